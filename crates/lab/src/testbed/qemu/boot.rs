//! How the computer is started (qemu(1)).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testbed::cache::Kernel;
use crate::testbed::job;
use crate::testbed::run::Options;

/// The program.
pub const PROGRAM: &str = "qemu-system-x86_64";
/// Folder of firmware, beside the kernel.
pub const FIRMWARE: &str = "firmware";
/// Tag of the files of this computer.
const HOST: &str = "host";
/// Tag of the job's folder. Folders to write to have `w0`, `w1`, ...
pub const JOB: &str = "job";
/// How a share is mounted for writing: each write is at the host when it returns.
pub const WRITABLE: &str = "trans=virtio,version=9p2000.L,msize=262144,cache=none";

/// Tag of the n-th folder to write to.
pub fn tag(n: usize) -> String {
    format!("w{n}")
}

/// The computer with its parameters; `folder` is that of the job.
pub fn command(options: &Options, kernel: &Kernel, folder: &Path, writable: &[PathBuf]) -> Command {
    let mut command = Command::new(PROGRAM);
    let place = folder.display();
    let mut words = vec![
        "console=ttyS0".to_owned(),
        "panic=-1".to_owned(),
        "rdinit=/init".to_owned(),
        // the parts of a computer that nobody asks for take most of the time to boot
        "mitigations=off".to_owned(),
        // the kernel tests its timer for some ticks, and panics when a busy host keeps the guest from running for as long
        "no_timer_check".to_owned(),
        // the kernel looks for firmware below the root of its first process, which moves to the files of this computer
        format!("firmware_class.path={}", kernel.folder.join(FIRMWARE).display()),
        format!("{}={place}", job::FOLDER_VARIABLE),
    ];
    words.extend(options.settings());
    command
        .current_dir(folder)
        .args(["-M", "q35", "-cpu", "max"])
        .args(match options.kvm {
            true => ["-accel", "kvm"].as_slice(),
            false if !options.counts_instructions() => &["-accel", "tcg"],
            // the guest's clock counts instructions, 2 ns for each, and jumps when the processor is idle: a busy host
            // does not show in it
            false => &["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"],
        })
        .args(["-smp", &options.cpus.to_string()])
        .args(["-m", &format!("{}M", options.memory >> 20)])
        .args([
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
        ])
        .arg("-kernel")
        .arg(kernel.program())
        .arg("-initrd")
        .arg(kernel.initramfs())
        .args(["-append", &words.join(" ")]);
    if !options.sticks.is_empty() {
        command.args(["-device", "qemu-xhci,id=usb"]);
    }
    for (n, socket) in options.sticks.iter().enumerate() {
        let path = socket.display().to_string().replace(',', ",,");
        command.args(["-chardev", &format!("socket,id=stick{n},path={path}")]);
        command.args(["-device", &format!("usb-redir,chardev=stick{n},bus=usb.0")]);
    }
    let mut share = |path: &Path, tag: &str, more: &str| {
        // a comma ends a value and two stand for one
        let path = path.display().to_string().replace(',', ",,");
        let text = format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap{more}");
        command.args(["-virtfs", &text]);
    };
    share(Path::new("/"), HOST, ",readonly=on");
    share(folder, JOB, "");
    for (n, path) in writable.iter().enumerate() {
        share(path, &tag(n), "");
    }
    command
}

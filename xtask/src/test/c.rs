//! The step `c`: headers that fit their crates, and C programs that use them, compiled and run: on this computer, over the 802.11
//! stack of a guest and over an emulated stick at its USB against `libsdmac`; against the ad hoc link layer, here and on a Cortex-M3 in
//! QEMU, and below the drivers for Contiki-NG.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::Outcome;
use super::binaries::TESTS;
use super::lab::{get, get_qemu};
use super::steps::{THUMB, partly, skipped};
use super::tools::{answer, cargo_at_root, exists, run, rust_target};
use crate::c::{get_cbindgen, put, stale_headers};
use crate::workspace::Workspace;

/// The link layer for firmware: a workspace of its own.
const IBSS: &str = "bindings/ibss";
const CONTIKI: &str = "bindings/contiki-ng";
const STRICT: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"];
/// Programs of `bindings/c/samples` with the hosts that they are run on.
const SAMPLES: &[(&str, &[&str])] = &[
    (
        "oneshot",
        &["simulator:2", "simulator:2,seed=3,loss=0.2", "ar9170:2"],
    ),
    ("beacons", &["simulator:2", "ar9170:2"]),
];

pub(super) fn c(workspace: &Workspace) -> Result<Outcome> {
    if let Some(none) = ["gcc", "make"].into_iter().find(|tool| !exists(tool)) {
        return skipped(format!("no `{none}`"));
    }
    let mut missing = Vec::new();
    let mut told = Vec::new();
    match get_cbindgen(workspace) {
        Ok(()) => {
            let stale = stale_headers(workspace)?;
            ensure!(
                stale.is_empty(),
                "not what the crates say: {}; run `cargo xtask c header`",
                stale.join(", ")
            );
            told.push("headers fit".to_owned());
        }
        Err(why) => missing.push(format!("headers, {why}")),
    }
    let folder = workspace.target.join("c");
    put(workspace, &folder, TESTS)?;
    let flags = flags(&folder.join("lib"));
    if flags.is_none() {
        missing
            .push("what pkg-config says, which is not installed: sudo apt-get install pkg-config".to_owned());
    }
    let runs = samples(workspace, &folder, flags.as_deref())?;
    told.push(format!("{runs} runs of samples"));
    let mut part = |end: Result<String, String>| match end {
        Ok(remark) => told.push(remark),
        Err(why) => missing.push(why),
    };
    part(on_linux(workspace, &folder)?);
    part(on_a_stick(workspace, &folder)?);
    let archive = build_ibss(workspace, None)?;
    let three = three(workspace, &folder, &archive)?;
    let contiki = contiki(workspace, &folder)?;
    part(Ok("link layer and Contiki-NG's drivers run here".to_owned()));
    part(board(workspace, &folder, &three, &contiki)?);
    partly(told, missing)
}

fn gcc(workspace: &Workspace) -> Command {
    let mut command = Command::new("gcc");
    command.args(STRICT).current_dir(&workspace.root);
    command
}

/// Each sample with the shared library, by these flags of pkg-config, and with the static library; how many runs.
fn samples(workspace: &Workspace, folder: &Path, flags: Option<&str>) -> Result<usize> {
    let lib = folder.join("lib");
    let mut runs = 0;
    for (name, hosts) in SAMPLES {
        let source = format!("bindings/c/samples/{name}.c");
        let shared = folder.join(name);
        let mut compile = gcc(workspace);
        compile.arg(&source).arg("-o").arg(&shared);
        match flags {
            Some(flags) => compile.args(flags.split_whitespace()),
            // without pkg-config, what its file says
            None => compile
                .arg("-I")
                .arg(folder.join("include"))
                .arg("-L")
                .arg(&lib)
                .arg("-lsdmac"),
        };
        run(&mut compile)?;
        for host in *hosts {
            run(Command::new(&shared).arg(host).env("LD_LIBRARY_PATH", &lib))?;
            runs += 1;
        }
        let alone = folder.join(format!("{name}-static"));
        let mut compile = gcc(workspace);
        compile.arg("-I").arg(folder.join("include")).arg(&source);
        compile.arg(lib.join("libsdmac.a"));
        run(compile.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&alone))?;
        run(&mut Command::new(&alone))?;
        runs += 1;
    }
    Ok(runs)
}

/// The samples over two radios of Linux's own 802.11 stack, in a guest. The inner `Err` says what could not run, and why.
fn on_linux(workspace: &Workspace, folder: &Path) -> Result<Result<String, String>> {
    for (name, _) in SAMPLES {
        let mut guest = match super::lab::guest(workspace)? {
            Ok(guest) => guest,
            Err(why) => return Ok(Err(format!("samples over Linux's radios, since {why}"))),
        };
        guest.args(["--radios", "2", "--"]);
        run(guest
            .arg(folder.join(format!("{name}-static")))
            .arg("linux:phy0@5180,phy1@5180"))?;
    }
    Ok(Ok(format!("{} over Linux's radios", SAMPLES.len())))
}

/// One stick is the station that acknowledges, the other one is for the sample. Words: `sdmac`, the sample.
const ON_A_STICK: &str = r#"
sdmac=$1 sample=$2
firmware=$(cat /sys/module/firmware_class/parameters/path)/carl9170-1.fw
set -- $(cd /sys/bus/usb/devices && grep -l 9170 */idProduct | cut -d/ -f1)
$sdmac measure --iface usb:$2 --channel 2437 --firmware $firmware --peer > /tmp/peer 2>&1 & peer=$!
n=0
until grep -q -- "--to " /tmp/peer; do
    sleep 1; n=$((n + 1))
    [ $n -lt 60 ] || { cat /tmp/peer; exit 9; }
done
$sample usb:$1@2437,firmware=$firmware $(sed -n 's/.*--to //p' /tmp/peer) || { cat /tmp/peer; exit 1; }
kill -INT $peer
wait $peer
"#;

/// The measurement of a sample over an emulated stick at the USB of Debian's kernel. The inner `Err` says what could not run, and why.
fn on_a_stick(workspace: &Workspace, folder: &Path) -> Result<Result<String, String>> {
    if let Err(why) = super::lab::has_guest_with_sticks() {
        return Ok(Err(format!("a sample over a stick, since {why}")));
    }
    let sdmac = workspace.sdmac();
    let sockets = ["stick0", "stick1"].map(|name| folder.join(name));
    for socket in &sockets {
        // of a run that was killed
        let _ = std::fs::remove_file(socket);
    }
    let mut server = Command::new(&sdmac)
        .args(["ar9170", "serve", "--json"])
        .args(&sockets)
        .stdout(Stdio::null())
        .spawn()?;
    // it is silent with --json until its end
    let end = loop {
        if sockets.iter().all(|socket| socket.exists()) {
            let mut guest = Command::new(&sdmac);
            guest.args(["lab", "run", "--qemu", "standard", "--radios", "0"]);
            for socket in &sockets {
                guest.arg("--stick").arg(socket);
            }
            guest.args(["--", "sh", "-c", ON_A_STICK, "sh"]);
            break run(guest.arg(&sdmac).arg(folder.join("oneshot-static")));
        }
        if let Some(status) = server.try_wait()? {
            bail!("`sdmac ar9170 serve` has ended, {status}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let _ = server.kill();
    let _ = server.wait();
    for socket in sockets {
        let _ = std::fs::remove_file(socket);
    }
    end.map(|()| Ok("one over a stick".to_owned()))
}

fn flags(lib: &Path) -> Option<String> {
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "sdmac"])
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    answer(&mut ask)
}

/// Builds the link layer for a target, or for this computer: the library.
fn build_ibss(workspace: &Workspace, target: Option<&str>) -> Result<std::path::PathBuf> {
    let root = workspace.root.join(IBSS);
    let mut build = cargo_at_root(workspace, "build --release --locked");
    if let Some(target) = target {
        build.args(["--target", target]);
    }
    run(build.current_dir(&root).env_remove("CARGO_TARGET_DIR"))?;
    let built = root.join("target").join(target.unwrap_or(""));
    Ok(built.join("release/libsdmac_ibss.a"))
}

/// Stations in one program: what it printed.
fn three(workspace: &Workspace, folder: &Path, archive: &Path) -> Result<String> {
    let program = folder.join("three");
    let mut compile = gcc(workspace);
    compile.args(["-I", IBSS, &format!("{IBSS}/samples/three.c")]);
    run(compile.arg(archive).arg("-o").arg(&program))?;
    let told = super::tools::run_and_read(&mut Command::new(&program))?;
    ensure!(
        told.code == Some(0),
        "the stations of three.c did not find each other"
    );
    Ok(told.stdout)
}

/// A clock of Contiki-NG that ticks 128 times in a second.
const SLOW_TICKS: &str = "-DCLOCK_SECOND=128";
/// A port with such a clock, a timer of its own, soft beacons and a key.
const ALARM: &[&str] = &[
    SLOW_TICKS,
    "-DSDMAC_CONF_ALARM=1",
    "-DSDMAC_CONF_SOFT_BEACON_US=20000",
    "-DSDMAC_CONF_KEY={1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}",
];

/// Programs of the drivers for Contiki-NG: with its clock, with a timer of the port, and one whose settings have no meaning.
const CONTIKI_PROGRAMS: [(&str, &[&str]); 3] = [
    ("contiki", &[]),
    ("contiki-alarm", ALARM),
    (
        "contiki-none",
        &["-DTRY_NO_STATION=1", "-DSDMAC_CONF_SLOT_US=200000"],
    ),
];
/// A linker that has something to say has failed.
const FATAL: &str = "-Wl,--fatal-warnings";

/// How a project of Contiki-NG is built, with what Makefile.sdmac says: a program, with these flags of the compiler and of the linker.
fn project(workspace: &Workspace, program: &Path, flags: &[&[&str]], link: &[&str]) -> Command {
    let quoted = |flags: &[&str]| {
        flags
            .iter()
            .map(|f| format!("'{f}'"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut make = Command::new("make");
    make.current_dir(workspace.root.join(CONTIKI).join("facts"))
        .arg("--always-make")
        .arg(format!("PROGRAM={}", program.display()))
        .env("CFLAGS", quoted(&flags.concat()))
        .env("LDFLAGS", quoted(&[&[FATAL], link].concat()));
    make
}

/// The drivers for Contiki-NG against the facts of its interfaces, at work: what the programs printed. With ticks that are too long there
/// is a sentence for it.
fn contiki(workspace: &Workspace, folder: &Path) -> Result<Vec<String>> {
    let mut printed = Vec::new();
    for (name, more) in CONTIKI_PROGRAMS {
        let program = folder.join(name);
        run(project(workspace, &program, &[STRICT, more], &[]).arg("CC=gcc"))?;
        let told = super::tools::run_and_read(&mut Command::new(&program))?;
        ensure!(told.code == Some(0), "{name} has failed: {}", told.stdout);
        printed.push(told.stdout);
    }
    let slow = folder.join("contiki-slow");
    let mut slow = project(workspace, &slow, &[STRICT, &[SLOW_TICKS]], &[]);
    // not shown: this is to fail
    let told = slow.arg("CC=gcc").output()?;
    let said = String::from_utf8_lossy(&told.stderr);
    ensure!(
        !told.status.success() && said.contains("set SDMAC_CONF_ALARM to 1"),
        "ticks that are too long compile"
    );
    Ok(printed)
}

/// Flags for a Cortex-M3.
const ARM: &[&str] = &["-mcpu=cortex-m3", "-mthumb", "-Os", "-ffunction-sections"];

/// The same on a microcontroller, as far as there are tools: each program has to print what it printed here. The inner `Err` says what
/// could not be done, and why.
fn board(
    workspace: &Workspace,
    folder: &Path,
    three: &str,
    contiki: &[String],
) -> Result<Result<String, String>> {
    if let Err(why) = rust_target(workspace, THUMB) {
        return Ok(Err(format!("all on a Cortex-M3: {why}")));
    }
    let archive = build_ibss(workspace, Some(THUMB))?;
    let packages = &["gcc-arm-none-eabi", "libnewlib-arm-none-eabi"];
    if let Err(why) = get("arm-none-eabi-gcc", packages) {
        return Ok(Err(format!(
            "C on a Cortex-M3: there is no arm-none-eabi-gcc, {why}"
        )));
    }
    let script = workspace.root.join(IBSS).join("samples/mps2.ld");
    let link = [
        "-Wl,--gc-sections",
        "--specs=rdimon.specs",
        "-T",
        &script.display().to_string(),
    ];
    let mut programs = vec![(folder.join("three.elf"), three)];
    let mut compile = Command::new("arm-none-eabi-gcc");
    compile.current_dir(&workspace.root).args(STRICT).args(ARM);
    compile.args(link).args([FATAL, "-Wl,-z,noexecstack", "-I", IBSS]);
    for name in ["three", "mps2"] {
        compile.arg(format!("{IBSS}/samples/{name}.c"));
    }
    run(compile.arg(&archive).arg("-o").arg(&programs[0].0))?;
    for ((name, more), printed) in CONTIKI_PROGRAMS.iter().zip(contiki) {
        let program = folder.join(format!("{name}.elf"));
        run(project(workspace, &program, &[STRICT, ARM, more], &link)
            .args(["CC=arm-none-eabi-gcc", "PORT=mps2.c"])
            .arg(format!("SDMAC_TARGET={THUMB}")))?;
        programs.push((program, printed));
    }
    if let Err(why) = get_qemu("qemu-system-arm", "qemu-system-arm") {
        return Ok(Err(format!(
            "running on a Cortex-M3: there is no qemu-system-arm, {why}"
        )));
    }
    for (program, printed) in programs {
        let mut qemu = Command::new("qemu-system-arm");
        qemu.args(["-M", "mps2-an385", "-nographic", "-semihosting", "-kernel"]);
        let told = super::tools::run_and_read(qemu.arg(&program))?;
        let name = program.display();
        ensure!(told.code == Some(0), "{name} has failed: {}", told.stdout);
        ensure!(
            told.stdout == printed,
            "{name} comes to other numbers on a Cortex-M3 than on this computer"
        );
    }
    Ok(Ok("on a Cortex-M3 in QEMU the same to the last digit".to_owned()))
}

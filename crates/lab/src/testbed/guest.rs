//! The first process inside the guest: prepares the place, runs the program, reports, and turns the machine off.
//!
//! The root of the guest is the host's file system, read-only, with a layer of memory on top: a program finds
//! everything that is installed on the host, and what it writes is gone afterwards, except in the folders of
//! [`Job::writable`]. Permissions are those of the user on the host.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::time::{ClockId, clock_gettime};

use super::job::{self, End, FOLDER_VARIABLE, How, Job, SHARE_VARIABLE, STREAMS};
use super::qemu::boot;

/// Name of the hidden command that runs [`main`].
pub const COMMAND: &str = "lab-init";
/// Where the new root is put together: a folder that every Linux has, and that nobody needs before.
const SITE: &str = "/sys";
/// Where radios are listed.
const RADIOS: &str = "/sys/class/ieee80211";

/// How long the guest waits for its sticks: one takes some seconds on a busy computer.
const STICKS_NS: u64 = 120_000_000_000;
/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Runs as process 1 of a guest and turns it off in the end. It returns only where it is not process 1.
///
/// # Panics
/// When there is nobody to report to; the kernel then stops too, and its log says why.
pub fn main() -> io::Error {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let Some(folder) = folder.filter(|_| std::process::id() == 1) else {
        return io::Error::other(format!(
            "`{COMMAND}` is for the inside of the lab: use `sdmac lab run`"
        ));
    };
    let end = live(&folder).unwrap_or_else(|error| End {
        how: How::NotStarted(error),
        took_ns: 0,
        uptime_ns: uptime_ns(),
        written: [0, 0],
    });
    report(&folder, &end).expect("the folder of the job can be written to");
    rustix::fs::sync();
    match reboot(RebootCommand::PowerOff) {
        Ok(()) => unreachable!("the machine is off"),
        Err(error) => error.into(),
    }
}

/// Everything between boot and report. Errors are sentences.
fn live(folder: &Path) -> Result<End, String> {
    let job = settle(folder).map_err(|(what, error)| format!("{what}: {error}"))?;
    let wanted = (job.radios + job.sticks) as usize;
    let radios = || std::fs::read_dir(RADIOS).map_or(0, Iterator::count);
    // sticks are found, and given their firmware, while the system boots
    let begun = uptime_ns();
    while job.sticks > 0 && radios() < wanted && uptime_ns() - begun < STICKS_NS {
        std::thread::sleep(LOOK);
    }
    let radios = radios();
    if radios != wanted {
        return Err(format!("{wanted} radios were asked for and {radios} came"));
    }
    if let Some(module) = &job.module {
        load(module).map_err(|e| format!("the module {} does not load: {e}", module.display()))?;
    }
    let [out, err] = STREAMS.map(|name| stream(&folder.join(name)));
    let (out, err) = (
        out.map_err(|e| format!("the output: {e}"))?,
        err.map_err(|e| format!("the output: {e}"))?,
    );
    // without it a sleep may last 50 us longer, and in virtual time it always does (prctl(2), PR_SET_TIMERSLACK)
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|e| format!("the timer slack: {e}"))?;
    let begun = uptime_ns();
    let how = run(&job, &out, &err);
    let ended = uptime_ns();
    Ok(End {
        how,
        took_ns: ended - begun,
        uptime_ns: ended,
        written: [&out, &err].map(|file| file.metadata().map_or(0, |m| m.len())),
    })
}

/// Loads a kernel module, without parameters.
fn load(module: &Path) -> io::Result<()> {
    Ok(finit_module(File::open(module)?, c"", 0)?)
}

type Trouble = (String, io::Error);

/// Mounts everything and moves into the new root.
fn settle(folder: &Path) -> Result<Job, Trouble> {
    let none = MountFlags::empty();
    let attach = |kind: &str, at: &Path, data: &str| {
        let data = CString::new(data).expect("no NUL in what a job can hold");
        let text = || format!("cannot mount {kind} at {}", at.display());
        mount("none", at, kind, none, data.as_c_str()).map_err(|e| (text(), e.into()))
    };
    let place = |path: &Path| {
        Path::new(SITE)
            .join("root")
            .join(path.strip_prefix("/").unwrap_or(path))
    };
    let folders = |names: &[&str]| {
        names
            .iter()
            .try_for_each(|name| std::fs::create_dir_all(Path::new(SITE).join(name)))
            .map_err(|e| ("cannot make folders in memory".to_owned(), e))
    };

    // the way to report comes first; its folder stays visible below the new root, too
    let share = |path: &Path, tag: &str, at: &Path| match std::env::var_os(SHARE_VARIABLE) {
        None => attach("hostfs", at, &host(path)),
        Some(_) => {
            let data = CString::new(boot::WRITABLE).expect("no NUL in it");
            let text = || format!("cannot mount {tag} at {}", at.display());
            mount(tag, at, "9p", none, data.as_c_str()).map_err(|e| (text(), e.into()))
        }
    };
    share(folder, boot::JOB, folder)?;
    attach("tmpfs", Path::new(SITE), "")?;
    folders(&["upper", "work", "root"])?;
    attach(
        "overlay",
        &place(Path::new("")),
        &format!("lowerdir=/,upperdir={SITE}/upper,workdir={SITE}/work"),
    )?;
    folders(&["root/proc", "root/sys", "root/dev", "root/run", "root/tmp"])?;
    attach("proc", &place(Path::new("/proc")), "")?;
    attach("sysfs", &place(Path::new("/sys")), "")?;
    attach("devtmpfs", &place(Path::new("/dev")), "")?;
    folders(&["root/dev/shm", "root/dev/pts"])?;
    attach("tmpfs", &place(Path::new("/dev/shm")), "")?;
    attach("devpts", &place(Path::new("/dev/pts")), "")?;
    attach("tmpfs", &place(Path::new("/run")), "")?;
    attach("debugfs", &place(Path::new("/sys/kernel/debug")), "")?;

    let job: Job = job::read(folder, job::JOB).map_err(|e| ("cannot read the job".to_owned(), e))?;
    std::fs::create_dir_all(place(folder)).map_err(|e| ("cannot make a folder in memory".to_owned(), e))?;
    for (n, writable) in job.writable.iter().enumerate() {
        share(writable, &boot::tag(n), &place(writable))?;
    }
    mount_bind(folder, place(folder)).map_err(|e| ("cannot show the job's folder".to_owned(), e.into()))?;
    if std::env::var_os(SHARE_VARIABLE).is_some() {
        attach("tracefs", &place(Path::new("/sys/kernel/tracing")), "")?;
    }
    rustix::process::chroot(place(Path::new("")))
        .and_then(|()| rustix::process::chdir("/"))
        .map_err(|e| ("cannot move into the new root".to_owned(), e.into()))?;
    // IFF_UP is bit 0
    std::fs::write("/sys/class/net/lo/flags", "0x1").map_err(|e| ("cannot bring up lo".to_owned(), e))?;
    Ok(job)
}

/// How hostfs is told which folder of the host it shows.
fn host(folder: &Path) -> String {
    folder.display().to_string()
}

/// A file whose every write is at the host when it returns. It costs no virtual time.
fn stream(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .custom_flags(OFlags::SYNC.bits() as i32)
        .open(path)
}

fn run(job: &Job, out: &File, err: &File) -> How {
    let start = || -> io::Result<_> {
        Command::new(&job.program)
            .args(&job.arguments)
            .env_clear()
            .envs(&job.environment)
            .current_dir(&job.directory)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            .spawn()
    };
    let mut child = match start() {
        Ok(child) => child,
        Err(error) => return How::NotStarted(format!("{} does not start: {error}", job.program.display())),
    };
    // orphans end up here; they take no harm from waiting until the machine is off
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, signal) => How::Killed(signal.unwrap_or_default()),
        },
        Err(error) => How::NotStarted(format!("the program was lost: {error}")),
    }
}

fn report(folder: &Path, end: &End) -> io::Result<()> {
    let octets = serde_json::to_vec(end).map_err(io::Error::other)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(OFlags::SYNC.bits() as i32)
        .open(folder.join(job::END))?;
    file.write_all(&octets)
}

fn uptime_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    // since boot, so neither part is negative
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_it_does_nothing() {
        assert!(main().to_string().contains("sdmac lab run"));
    }
}

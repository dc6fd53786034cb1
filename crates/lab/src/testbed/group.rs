//! A program with all its children: one process group, which ends as a whole.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

/// A running process group. Dropping it kills all of it.
#[derive(Debug)]
pub struct Group {
    child: Child,
    running: bool,
}

impl Group {
    /// Starts a command as the leader of a new group, out of reach of the terminal's Ctrl-C.
    pub fn spawn(command: &mut Command) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        Ok(Group { child, running: true })
    }

    /// The leader.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The leader's status once it has ended; what it left running is killed then.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.end();
        }
        Ok(status)
    }

    /// Waits for the leader, and kills what it left running.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.end();
        Ok(status)
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.running, false) {
            kill(self.child.id());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        // already collected, or killed just now
        let _ = self.child.wait();
    }
}

/// Kills every process of a group; one that is gone is fine.
pub fn kill(group: u32) {
    let leader = i32::try_from(group).ok().and_then(Pid::from_raw);
    if let Some(leader) = leader.filter(|pid| !pid.is_init()) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use rustix::process::test_kill_process_group;

    use super::*;

    fn is_there(group: u32) -> bool {
        let leader = Pid::from_raw(group as i32).unwrap();
        test_kill_process_group(leader).is_ok()
    }

    #[test]
    fn nothing_of_the_group_is_left() {
        let mut group = Group::spawn(Command::new("sh").args(["-c", "sleep 1000 & sleep 1000"])).unwrap();
        let id = group.child().id();
        assert!(group.try_wait().unwrap().is_none());
        assert!(is_there(id));
        drop(group);
        // the orphan was killed too; whoever adopts it collects it in a moment
        while is_there(id) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_status_arrives() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]).stdout(Stdio::null());
        assert_eq!(
            Group::spawn(&mut command).unwrap().wait().unwrap().code(),
            Some(7)
        );
    }
}

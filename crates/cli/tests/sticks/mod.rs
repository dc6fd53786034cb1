//! Emulated sticks and a guest of QEMU that has them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub const SDMAC: &str = env!("CARGO_BIN_EXE_sdmac");

/// Sticks that are served until this is asked for what they have seen, or dropped.
pub struct Sticks {
    server: Child,
    sockets: Vec<PathBuf>,
}

impl Sticks {
    pub fn serve(folder: &Path, count: usize, more: &[&str]) -> Sticks {
        let sockets: Vec<PathBuf> = (0..count).map(|n| folder.join(format!("stick{n}"))).collect();
        let mut server = Command::new(SDMAC)
            .args(["ar9170", "serve"])
            .args(&sockets)
            .args(more)
            .args(["--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // it is silent with --json until its end
        while !sockets.iter().all(|socket| socket.exists()) {
            assert!(server.try_wait().unwrap().is_none(), "the server has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        Sticks { server, sockets }
    }

    /// Runs a script in a guest with these sticks: what it prints. It must succeed.
    pub fn guest(&self, script: &str) -> String {
        let mut run = Command::new(SDMAC);
        run.args(["lab", "run", "--qemu", "standard", "--radios", "0"]);
        for socket in &self.sockets {
            run.arg("--stick").arg(socket);
        }
        let me = std::env::current_exe().unwrap();
        let done = run
            .args(["--", "sh", "-c", script])
            .env("INSIDE", me)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        println!("{text}");
        assert!(done.status.success(), "{}", done.status);
        text
    }

    /// What they have seen.
    pub fn end(mut self) -> Value {
        let id = self.server.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
        let mut line = String::new();
        let mut out = self.server.stdout.take().unwrap();
        out.read_to_string(&mut line).unwrap();
        assert!(self.server.wait().unwrap().success());
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }
}

impl Drop for Sticks {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

//! `sdmac lab` from outside: with stand-ins for the kernel and for the compilers, and, in the tests that
//! `cargo xtask lab` runs, with the real ones.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab::testbed::uml::config;

/// Until a process that was killed is gone. Long, since it is for a busy machine; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place with its own cache.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, script: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A shell script in place of the kernel. It finds the folder of the job in `$folder`.
    fn kernel(&self, script: &str) {
        let find = "for p; do case $p in SDMAC_LAB_FOLDER=*) folder=${p#*=};; esac; done";
        self.script(
            &format!("sdmac/lab/linux-6.1.0-{}/linux", config::hash()),
            &format!("{find}\n{script}"),
        );
    }

    fn sdmac(&self, args: &[&str]) -> Command {
        let mut command = sdmac(args);
        command.env("XDG_CACHE_HOME", self.folder.path());
        command
    }
}

fn sdmac(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.arg("lab").args(args);
    command
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How many processes have this text in their command line.
fn processes(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    })
    .count()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const END: &str = r#"{"how":{"exited":7},"took_ns":5,"uptime_ns":9,"written":[4,4]}"#;

#[test]
fn output_and_exit_code_arrive() {
    let place = Place::new();
    place.kernel(&format!(
        "echo one >> $folder/stdout; echo two >> $folder/stderr; echo '{END}' > $folder/end.json"
    ));
    let output = place.sdmac(&["run", "--json", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    assert_eq!(err(&output), "two\n");
    let lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "one");
    assert!(lines[1].contains(r#""took_ns":5"#), "{}", lines[1]);
}

#[test]
fn output_that_got_lost_is_noticed() {
    let place = Place::new();
    place.kernel(&format!(
        "echo one >> $folder/stdout; echo '{END}' > $folder/end.json"
    ));
    let output = place.sdmac(&["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(err(&output).contains("4 octets of the program's output were lost"));
}

#[test]
fn a_kernel_that_panics_is_reported_and_so_is_a_guest_that_cannot() {
    let place = Place::new();
    place.kernel(
        "echo '[    0.1] Kernel panic - not syncing: No init found.'; echo '[    0.1] Call Trace:'; exit 1",
    );
    let log = place.path("kernel.log");
    let output = place
        .sdmac(&["run", "--kernel-log", log.to_str().unwrap(), "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        err(&output),
        "sdmac: the guest's kernel stopped before the program ended: Kernel panic - not syncing: No init found.\n"
    );
    assert!(std::fs::read_to_string(log).unwrap().contains("Call Trace"));

    place.kernel(
        r#"echo '{"how":{"not_started":"no radios"},"took_ns":0,"uptime_ns":9,"written":[0,0]}' > $folder/end.json"#,
    );
    let output = place.sdmac(&["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(err(&output), "sdmac: in the guest: no radios\n");
}

#[test]
fn a_guest_that_does_not_end_is_killed() {
    let place = Place::new();
    place.kernel("sleep 1000 & sleep 1000");
    let output = place
        .sdmac(&["run", "--limit", "1", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(err(&output).contains("killed after 1 s"), "{}", err(&output));
    assert_eq!(processes(place.folder.path().to_str().unwrap()), 0);
}

/// SIGINT is answered, SIGKILL cannot be: the guard does it then.
#[test]
fn whatever_ends_sdmac_the_guest_is_gone() {
    for signal in ["INT", "TERM", "KILL"] {
        let place = Place::new();
        place.kernel("echo $folder > $XDG_CACHE_HOME/folder.new; mv $XDG_CACHE_HOME/folder.new $XDG_CACHE_HOME/folder; sleep 1000");
        let mut child = place
            .sdmac(&["run", "--", "true"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the guest starts", || place.path("folder").exists());
        let folder = std::fs::read_to_string(place.path("folder")).unwrap();
        let kill = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        if signal == "INT" {
            assert_eq!(status.code(), Some(130));
        }
        let name = place.folder.path().to_str().unwrap();
        until("the guest is gone", || processes(name) == 0);
        until("its folder is gone", || !Path::new(folder.trim()).exists());
        until("the guard is gone", || processes(folder.trim()) == 0);
    }
}

#[test]
fn wrong_input_is_one_sentence() {
    let place = Place::new();
    place.kernel("exit 0");
    for (args, code, sentence) in [
        (
            &["run", "--", "no-such-program"][..],
            125,
            "no-such-program: there is no such program",
        ),
        (&["run", "--", "/etc"], 125, "/etc: there is no such program"),
        (
            &["run", "--write", "/no/such", "--", "true"],
            125,
            "/no/such: No such file",
        ),
        (
            &["run", "--mem", "3000000G", "--", "true"],
            125,
            "less with --mem",
        ),
        (&["run", "--radios", "101", "--", "true"], 2, "101 is not in"),
        (
            &["run", "--virtual", "--real", "--", "true"],
            2,
            "cannot be used with",
        ),
        (&["run"], 2, "<PROGRAM>"),
    ] {
        let output = place.sdmac(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(sentence), "{args:?}: {}", err(&output));
    }
    let init = Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .arg("lab-init")
        .output()
        .unwrap();
    assert!(err(&init).contains("use `sdmac lab run`"));
}

/// A machine where building needs nothing but shell scripts.
fn workshop(olddefconfig: &str, linux: &str) -> Place {
    let place = Place::new();
    for tool in ["gcc", "flex", "bison", "bc", "perl"] {
        place.script(&format!("bin/{tool}"), "exit 0");
    }
    place.script(
        "bin/make",
        &format!(
            "case \"$*\" in
             *olddefconfig*) {olddefconfig};;
             *defconfig*) echo CONFIG_UML=y > .config;;
             *linux*) {linux};;
             esac"
        ),
    );
    let tree = place.path("linux-6.1");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(
        tree.join("Makefile"),
        "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION =\n",
    )
    .unwrap();
    std::fs::write(place.path("regulatory.db"), b"RGDB\0\0\0\x14").unwrap();
    let tar = Command::new("tar")
        .args(["-cf", "source.tar", "linux-6.1"])
        .current_dir(place.folder.path())
        .status();
    assert!(tar.unwrap().success());
    place
}

fn build(place: &Place, more: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    let mut command = place.sdmac(&["build", "--source", "source.tar", "--regdb", "regulatory.db"]);
    command.args(more).current_dir(place.folder.path());
    command.env("PATH", path).output().unwrap()
}

#[test]
fn a_kernel_is_built_once_and_cleaned() {
    let place = workshop(
        ":",
        "echo '  CC a'; grep -q RGDB regdb/regulatory.db && echo kernel > linux",
    );
    let output = build(&place, &["--jobs", "1"]);
    assert!(output.status.success(), "{}", err(&output));
    let kernel = place.path(&format!("sdmac/lab/linux-6.1.7-{}/linux", config::hash()));
    assert_eq!(out(&output).trim(), kernel.to_str().unwrap());
    let cache = place.path("sdmac/lab");
    assert_eq!(
        std::fs::read_dir(&cache).unwrap().count(),
        2,
        "the kernel and the log"
    );
    assert!(
        std::fs::read_to_string(cache.join("linux-build.log"))
            .unwrap()
            .contains("  CC a")
    );

    let again = build(&place, &[]);
    assert!(out(&again).contains("is there"), "{}", err(&again));
    let anew = build(&place, &["--again"]);
    assert!(anew.status.success(), "{}", err(&anew));
    let status = place.sdmac(&["status"]).output().unwrap();
    assert!(out(&status).contains("linux: ready"), "{}", out(&status));
    assert!(place.sdmac(&["clean"]).status().unwrap().success());
    assert!(!cache.exists());
}

#[test]
fn a_build_that_fails_says_why() {
    let refused = "sed -i /CONFIG_MAC80211_HWSIM/d .config";
    let place = workshop(refused, "exit 1");
    let output = build(&place, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("refuses CONFIG_MAC80211_HWSIM=y:"),
        "{}",
        err(&output)
    );

    let place = workshop(
        ":",
        "echo 'a.c:1: error: no such thing'; echo 'make: leaving'; exit 2",
    );
    let output = build(&place, &[]);
    assert!(err(&output).contains("make failed: a.c:1: error: no such thing (log: "));
    assert_eq!(
        std::fs::read_dir(place.path("sdmac/lab")).unwrap().count(),
        1,
        "the log"
    );

    std::fs::write(place.path("source.tar"), "no tar").unwrap();
    assert!(err(&build(&place, &[])).contains("source.tar: cannot be unpacked"));
    std::fs::write(place.path("regulatory.db"), "no table").unwrap();
    assert!(err(&build(&place, &[])).contains("regulatory.db: is no regulatory.db"));
}

#[test]
fn missing_tools_are_named_with_their_packages() {
    let place = Place::new();
    place.script("bin/gcc", "exit 0");
    for action in [&["build"][..], &["run", "--", "/bin/sh"]] {
        let output = place
            .sdmac(action)
            .env("PATH", place.path("bin"))
            .output()
            .unwrap();
        assert!(
            err(&output).contains("sudo apt-get install make flex bison bc perl tar xz-utils"),
            "{}",
            err(&output)
        );
    }
}

// From here on with the real kernel.

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_output_exit_code_and_signal() {
    let script = "echo one; echo two >&2; exit 7";
    let output = sdmac(&["run", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    assert_eq!((out(&output), err(&output)), ("one\n".into(), "two\n".into()));

    let output = sdmac(&["run", "--", "sh", "-c", "kill -SEGV $$"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(128 + 11));
    assert_eq!(err(&output), "sdmac: sh: ended by signal 11\n");
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_long_output_arrives_whole() {
    let output = sdmac(&["run", "--", "seq", "200000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let lines = out(&output);
    assert!(
        (1..=200_000)
            .map(|n: u32| n.to_string())
            .eq(lines.lines().map(str::to_owned))
    );
}

/// A hundred seconds, and starting a program adds some readings of the clock, which cost 256 ns each.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_virtual_time() {
    let output = sdmac(&["run", "--json", "--", "sleep", "100"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    let took = json["took_ns"].as_u64().unwrap();
    assert!((100_000_000_000..100_001_000_000).contains(&took), "{took}");
    let real = sdmac(&["run", "--real", "--json", "--", "sleep", "0.1"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_str(&out(&real)).unwrap();
    assert!(json["took_ns"].as_u64().unwrap() > 100_100_000, "{json}");
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_radios_and_folders() {
    let place = Place::new();
    let folder = place.folder.path().to_str().unwrap();
    let count = "ls /sys/class/ieee80211 | wc -l > \"$0/count\"; touch \"$0/../in-memory-only\"";
    for radios in ["0", "1", "100"] {
        let args = [
            "run", "--radios", radios, "--write", folder, "--", "sh", "-c", count, folder,
        ];
        let output = sdmac(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(
            std::fs::read_to_string(place.path("count")).unwrap().trim(),
            radios
        );
        assert!(!place.path("../in-memory-only").exists());
    }
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_kernel_panic() {
    let output = sdmac(&["run", "--", "sh", "-c", "echo c > /proc/sysrq-trigger"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        err(&output).contains("Kernel panic - not syncing: sysrq triggered crash"),
        "{}",
        err(&output)
    );
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_guest_leaves_nothing() {
    for signal in ["INT", "KILL"] {
        let place = Place::new();
        let started = place.path("started");
        let folder = place.folder.path().to_str().unwrap();
        // a loop: only killing ends it
        let endless = "touch $0/started; sync; while :; do :; done";
        let mut child = sdmac(&["run", "--write", folder, "--", "sh", "-c", endless, folder])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let number = child.id().to_string();
        until("the guest runs", || started.exists());
        assert!(
            processes(&format!("sdmac-lab-{number}-")) >= 3,
            "guard, kernel, and processes of the guest"
        );
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &number])
                .status()
                .unwrap()
                .success()
        );
        child.wait().unwrap();
        until("the guest is gone", || {
            processes(&format!("sdmac-lab-{number}-")) == 0
        });
        let left = std::fs::read_dir("/dev/shm").unwrap().flatten();
        let name = format!("sdmac-lab-{number}-");
        assert_eq!(
            left.filter(|e| e.file_name().to_string_lossy().starts_with(&name))
                .count(),
            0
        );
    }
}

/// `sdmac air` in a guest: it ends with a summary after Ctrl-C, a second one is told who is there, and after SIGKILL the
/// kernel takes the next one.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_air_ends_in_each_way() {
    let place = Place::new();
    let folder = place.folder.path().to_str().unwrap();
    let scenario = "[run]\nduration = \"1s\"\n[[group]]\nname = \"sta\"\ncount = 2\nprotocol = \"sink\"\n";
    std::fs::write(place.path("s.toml"), scenario).unwrap();
    let script = "\"$1\" air \"$0/s.toml\" --json & first=$!; sleep 1\n\
                  \"$1\" air \"$0/s.toml\" --json 2> \"$0/err\"; echo busy $?\n\
                  kill -KILL $first; wait $first; echo killed $?\n\
                  \"$1\" air \"$0/s.toml\" --json & second=$!; sleep 1\n\
                  kill -INT $second; wait $second; echo ended $?";
    let sdmac_path = env!("CARGO_BIN_EXE_sdmac");
    let args = [
        "run", "--radios", "3", "--write", folder, "--", "sh", "-c", script, folder, sdmac_path,
    ];
    let output = sdmac(&args).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [busy, killed, summary, ended] = lines[..] else {
        panic!("{text}{}", err(&output))
    };
    assert_eq!([busy, killed, ended], ["busy 1", "killed 137", "ended 0"]);
    let sentence = std::fs::read_to_string(place.path("err")).unwrap();
    assert!(
        sentence.contains("another program is the air of these radios"),
        "{sentence}"
    );
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!(summary["nodes"][1]["radio"], "phy1");
    assert_eq!(summary["spare"][0], "phy2");
    assert_eq!(summary["total"]["frames"], 0);
}

/// With an air that makes every try, a driver with a rate table is told from one without.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn a_rate_table_shows_in_the_certificate() {
    let me = env!("CARGO_BIN_EXE_sdmac");
    let air = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/tdma.toml");
    let script = format!(
        "{me} air {air} > /dev/null & sleep 1
         {me} certify --phy phy0 --peer phy1 --channel 5180 --quick --json; kill -INT $!; wait"
    );
    for table in ["0", "1"] {
        let parameter = format!("mac80211_hwsim.rctbl={table}");
        let guest = [
            "run", "--radios", "2", "--param", &parameter, "--", "sh", "-c", &script,
        ];
        let done = sdmac(&guest).output().unwrap();
        let certificate: serde_json::Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", err(&done)));
        let proven = &certificate["proven"];
        assert_eq!(proven["one_shot"], true, "{proven}");
        assert_eq!(proven["one_shot_to_stations"], table == "0", "{proven}");
    }
}

/// The certificate of a simulated radio, printed and written, with a second radio and without.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn a_simulated_radio_is_certified() {
    let me = env!("CARGO_BIN_EXE_sdmac");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("certificate.json");
    let (write, file) = (folder.path().to_str().unwrap(), file.to_str().unwrap());
    let guest = [
        "run", "--radios", "2", "--write", write, "--", me, "certify", "--phy", "phy0", "--quick",
    ];
    let run = |more: &[&str]| sdmac(&[&guest, more].concat()).output().unwrap();
    let done = run(&["--peer", "wlan1", "--out", file]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let text = out(&done);
    for row in [
        "cannot be seen here  one-shot ",
        "does not hold        acknowledges as plain monitor",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let written = std::fs::read(file).unwrap();
    let certificate: linux::wifi::certify::Certificate = serde_json::from_slice(&written).unwrap();
    assert_eq!(
        (certificate.certificate, certificate.partial, certificate.emulated),
        (2, false, true)
    );
    assert_eq!(certificate.address, "02:00:00:00:00:00");
    assert!(text.contains("no times of a computer"), "{text}");
    assert_eq!(certificate.driver, "mac80211_hwsim");
    assert_eq!(
        certificate.proven.one_shot, None,
        "hwsim's own air sends nothing twice"
    );
    assert!(certificate.rows.len() > 15, "{:?}", certificate.rows);
    let alone = run(&["--json"]);
    let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(alone["proven"]["one_shot"], serde_json::Value::Null);
    let same = run(&["--peer", "wlan0"]);
    assert_eq!(same.status.code(), Some(2));
    assert!(err(&same).contains("same radio"), "{}", err(&same));
}

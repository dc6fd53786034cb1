//! A receiver that waits at all addresses of a computer, called at each of them from another one.

use super::namespaces::{CANNOT, shell};

/// Two computers with a link between them, of which the second one has several addresses there, and one at no link.
const NETWORK: &str = r#"
set -eu
mount -t tmpfs none /run
ip netns add b
ip link set lo up; ip -n b link set lo up
ip link add name ea type veth peer name eb netns b
ip link set ea up; ip -n b link set eb up
ip addr add 10.0.0.1/24 dev ea; ip addr add fd00::1/64 dev ea nodad; ip addr add fe80::1/64 dev ea nodad
for n in 2 3; do
    ip -n b addr add 10.0.0.$n/24 dev eb
    ip -n b addr add fd00::$n/64 dev eb nodad; ip -n b addr add fe80::$n/64 dev eb nodad
done
ip -n b addr add 10.9.9.9/32 dev lo; ip -n b addr add fd09::9/128 dev lo nodad
ip route add 10.9.9.9 via 10.0.0.2; ip route add fd09::9 via fd00::2
head -c 20000 /dev/urandom > content
"$SDMAC" atp key key
called() { # LISTEN ADDRESS...: a file to each of the addresses, without a key and with one
    listen=$1; shift
    for key in "" "--key key"; do
        for at; do
            rm -rf in; mkdir in; rm -f waits
            ip netns exec b "$SDMAC" atp recv --listen "$listen" --dir in --once $key > /dev/null 2> waits & receiver=$!
            while ! grep -q waiting waits 2> /dev/null; do kill -0 $receiver; sleep 0.05; done
            if "$SDMAC" atp send content "$at:7800" --patience 5s $key > sent 2>&1; then
                wait $receiver
                cmp content in/content
            else
                echo "FAILED $listen $at $key: $(tail -n 1 sent)"
                kill $receiver; wait $receiver || true
            fi
        done
    done
}
"#;

#[test]
fn a_receiver_is_heard_from_the_address_that_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let calls = r#"
called 0.0.0.0:7800 10.0.0.2 10.0.0.3 10.9.9.9
called '[::]:7800' 10.0.0.3 10.9.9.9 '[fd00::2]' '[fd00::3]' '[fd09::9]' '[fe80::2%ea]' '[fe80::3%ea]'
echo DONE
"#;
    let output = shell(&format!("{NETWORK}{calls}"))
        .current_dir(dir.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(e) => return eprintln!("skipped: unshare: {e}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if !said.contains("DONE") {
        assert!(CANNOT.iter().any(|e| errors.contains(e)), "{said}{errors}");
        return eprintln!("skipped: {errors}");
    }
    assert!(!said.contains("FAILED"), "{said}");
}

//! The network of these tests.

use std::process::Output;

use super::namespaces::{CANNOT, shell};

/// The network, and functions for the scripts.
const NETWORK: &str = r#"
set -eu
mount -t tmpfs none /run
for n in a r b; do
    ip netns add $n
    # neighbours answer at once, and not after a second of looking for others with their address
    ip netns exec $n sh -c 'echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad'
    ip -n $n link set lo up
done
for n in a b; do
    ip link add name e$n netns $n type veth peer name to$n netns r
    ip -n $n link set e$n up
    ip -n r link set to$n up
done
ip -n a addr add 10.0.1.2/24 dev ea; ip -n a addr add fd00:1::2/64 dev ea nodad
ip -n r addr add 10.0.1.1/24 dev toa; ip -n r addr add fd00:1::1/64 dev toa nodad
ip -n r addr add 10.0.2.1/24 dev tob; ip -n r addr add fd00:2::1/64 dev tob nodad
ip -n b addr add 10.0.2.2/24 dev eb; ip -n b addr add fd00:2::2/64 dev eb nodad
ip -n a route add default via 10.0.1.1; ip -n a route add default via fd00:1::1
ip -n b route add default via 10.0.2.1; ip -n b route add default via fd00:2::1
ip netns exec r sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
role() { # NAME NAMESPACE: a part of this program there
    ip netns exec $2 env "$TEST" --ignored --exact --nocapture "roles::$1" >> $1.out 2>&1
}
begin() { # RECEIVER ADDRESS SENDER: packets one way, in the background; returns when the first is sent, or may be
    export TO=$2
    role receiver $1 & receiver=$!
    while [ ! -e listening ]; do sleep 0.05; done
    role sender $3 & sender=$!
    while [ ! -e sending ]; do sleep 0.05; done
}
end() { # all are sent; waits for what arrives
    wait $sender; wait $receiver
    rm listening sending
}
traffic() { # RECEIVER ADDRESS SENDER
    begin "$@"; end
}
full() { # NAME ADDRESS OPTIONS: a file of 1.5 MB to b, while the hop is there; what both ends say, and the hop
    name=$1; to=$2; shift 2
    [ -e content ] || head -c 1500000 /dev/urandom > content
    mkdir -p in; rm -f in/*
    hop --json
    rm -f recv.err # of the one before, which was waiting, too
    ip netns exec b "$SDMAC" atp recv --listen "$to" --dir in --once "$@" > recv.out 2> recv.err & receiver=$!
    while ! grep -qs waiting recv.err; do
        kill -0 $receiver
        sleep 0.05
    done
    ip netns exec a "$SDMAC" atp send content "$to" --json "$@" > $name.sent
    wait $receiver
    cmp content in/content
    kill -INT $hop; wait $hop
    mv hop.out $name.hop
}
hop() { # starts it in the background, and waits until it is there
    rm -f "$PWD/delay"
    ip netns exec r "$SDMAC" hop tob --delay ${DELAY:-3ms} --file "$PWD/delay" "$@" > hop.out 2> hop.err & hop=$!
    while [ ! -e "$PWD/delay" ]; do
        if ! kill -0 $hop 2> /dev/null; then echo "HOP $(cat hop.err)"; exit 0; fi
        sleep 0.05
    done
    sleep 0.2
}
"#;

/// Runs a script in namespaces of its own. `None` if that is not possible here.
pub fn script(dir: &std::path::Path, text: &str, count: u32, rate: u32) -> Option<Output> {
    let output = shell(&format!("{NETWORK}\n{text}\necho DONE"))
        .env("TEST", std::env::current_exe().unwrap())
        .env("COUNT", count.to_string())
        .env("RATE", rate.to_string())
        .current_dir(dir)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(e) => {
            eprintln!("skipped: unshare: {e}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(why) = said.lines().find_map(|l| l.strip_prefix("HOP ")) {
        assert!(why.contains("this kernel cannot"), "{why}");
        eprintln!("skipped: {why}");
        return None;
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("DONE") {
        let parts = ["hop.err", "sender.out", "receiver.out"].map(|name| {
            let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
            format!("{name}: {text}\n")
        });
        assert!(
            CANNOT.iter().any(|e| errors.contains(e)),
            "{said}{errors}{}",
            parts.concat()
        );
        eprintln!("skipped: {errors}");
        return None;
    }
    Some(output)
}

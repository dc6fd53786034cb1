//! Packets that were cut before they came to the hop.

use std::fs;

use crate::network::script;

/// A sender that lets its packets be cut, as those of other programs may: the hop counts what it cannot mark, and says so once.
#[test]
fn fragments_are_counted_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        ip -n a link set ea mtu 1000
        hop --stats
        traffic b 10.0.2.2 a
        sleep 1.5
        traffic b 10.0.2.2 a
        sleep 1.5
        kill -INT $hop; wait $hop
    ";
    let Some(_) = script(dir.path(), text, 100, 1_000) else {
        return;
    };
    let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
    let (out, errors) = (read("hop.out"), read("hop.err"));
    let last = out.lines().last().unwrap();
    assert!(
        last.contains("200 packets, 0 of them marked") && last.contains("200 came in fragments"),
        "{out}"
    );
    assert_eq!(errors.matches("come in fragments").count(), 1, "{errors}");
    assert!(errors.contains("the delay of tob"), "{errors}");
}

//! ATIMs that a slow host hears when their window is over, with and without a receive filter. `sdmac reproduce contiki80211` makes the table.

use lab::reproduce::contiki80211::own_stack::{Fate, Slow, run};

/// Runs, each with other phases and bursts around.
const SEEDS: u64 = 3;

/// Where a received frame takes 3 ms: the filter makes fewer of them late at each window, and so does a longer window, by as much as many
/// runs have shown. What the sticks acknowledge is heard, late or not.
#[test]
fn the_filter_makes_fewer_atims_late() {
    let late = [10, 20, 40].map(|window_tu| {
        [false, true].map(|filter| {
            let mut all = Fate::default();
            let slow = Slow {
                window_tu,
                filter,
                frame_us: 3_000,
            };
            (1..=SEEDS).for_each(|seed| all.merge(&run(slow, 500, seed)));
            println!("window of {window_tu} TU, filter {filter}: {all:?}");
            assert_eq!(all.heard, all.acked);
            assert!(all.acked * 100 > all.messages * 99);
            all.late as f64
        })
    });
    // runs of 1000 intervals by themselves: 1.3 to 3.0
    for [open, filtered] in late {
        let fewer = open / filtered;
        assert!((1.2..3.5).contains(&fewer), "{fewer}: {late:?}");
    }
    // 1.6 to 3.5 without filter from 10 to 20 TU, 3.2 to 6.9 from 20 to 40 TU
    let [short, middle, long] = late.map(|[open, _]| open);
    assert!((1.4..4.0).contains(&(short / middle)), "{late:?}");
    assert!((2.5..9.0).contains(&(middle / long)), "{late:?}");
}

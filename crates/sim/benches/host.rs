//! What draws from the host model cost, in thousands. The random words are part of it.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use sim::host::{HostModel, Outcome, Profile, Random, Wait};

fn main() {
    divan::main();
}

fn model(name: &str) -> HostModel {
    HostModel::new(&Profile::built_in(name).unwrap()).unwrap()
}

const PROFILES: [&str; 3] = ["ideal", "table4-optimised-io", "table5"];

/// Request and confirm of one transmission: ten words.
#[divan::bench(args = PROFILES)]
fn request_and_confirm(bencher: Bencher<'_, '_>, name: &str) {
    let (model, mut rng) = (model(name), ChaCha8Rng::seed_from_u64(1));
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        let one = |_| {
            let request = model.sample_request(&mut rng, black_box(50));
            let confirm = model.sample_confirm(&mut rng, request.load, black_box(Outcome::Acked));
            request.total_ns() + confirm.total_ns()
        };
        (0..1000).map(one).sum::<u64>()
    });
}

/// The words alone, for comparison.
#[divan::bench]
fn ten_words(bencher: Bencher<'_, '_>) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        let words = (0..10_000).map(|_| Random::next_u64(&mut rng));
        words.fold(0, |sum, word| sum ^ word)
    });
}

#[divan::bench]
fn indication(bencher: Bencher<'_, '_>) {
    let (model, mut rng) = (model("table5"), ChaCha8Rng::seed_from_u64(1));
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        (0..1000)
            .map(|_| model.sample_indication(&mut rng).total_ns())
            .sum::<u64>()
    });
}

#[divan::bench]
fn lateness(bencher: Bencher<'_, '_>) {
    let (model, mut rng) = (model("table5"), ChaCha8Rng::seed_from_u64(1));
    bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
        (0..1000)
            .map(|_| model.sample_lateness_ns(&mut rng, black_box(Wait::Timerfd)))
            .sum::<u64>()
    });
}

/// From TOML text to tables.
#[divan::bench(args = PROFILES)]
fn build(name: &str) -> HostModel {
    model(name)
}

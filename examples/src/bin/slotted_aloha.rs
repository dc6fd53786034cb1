//! Prints the throughput curve of slotted ALOHA: `cargo run --release -p sdmac-examples --bin slotted_aloha`.

fn main() {
    println!("   G      S  textbook");
    for tenth in [1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30] {
        let offered = f64::from(tenth) / 10.0;
        let found = examples::aloha_world::throughput(offered, 50_000, 1);
        println!(
            "{offered:4.1}  {found:.3}  {:.3}  {}",
            offered * f64::exp(-offered),
            "*".repeat((found * 100.0) as usize)
        );
    }
}

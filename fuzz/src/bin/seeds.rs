//! Writes the first inputs of each fuzz target to `corpus/`: specimens that the crate itself makes.

use std::path::Path;
use std::{fs, io};

#[path = "../../../crates/frame/tests/shared/mod.rs"]
mod shared;
#[path = "../../../crates/ar9170/tests/shared/mod.rs"]
mod stick;
#[path = "../../../crates/ar9170/tests/shared/usbredir.rs"]
mod usbredir;

fn main() -> io::Result<()> {
    let mut elements = shared::elements();
    elements.push(elements.concat());
    let mut bodies = shared::amsdus();
    bodies.extend(
        shared::frames()
            .into_iter()
            .map(|f| f[f.len().min(24)..].to_vec()),
    );
    let mut redirected = usbredir::hello();
    for packet in usbredir::packets() {
        packet.emit(1, &mut redirected);
    }
    let targets = [
        ("frame", shared::frames()),
        ("oracle", shared::frames()),
        ("elements", elements),
        ("radiotap", shared::packets()),
        ("body", bodies),
        ("ar9170", stick::transfers()),
        ("usbredir", vec![usbredir::hello(), redirected]),
    ];
    for (target, inputs) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (i, octets) in inputs.iter().enumerate() {
            fs::write(folder.join(format!("seed-{i:02}")), octets)?;
        }
        println!("{}: {} inputs", folder.display(), inputs.len());
    }
    Ok(())
}

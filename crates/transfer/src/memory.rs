//! Buffers of connections. The system gives each page of them when it is first written to, and has all of it back at their end: a connection on which nothing
//! has come costs next to none of its megabytes. An allocator keeps what was freed, and writes zeros into it when it is asked for again.

use memmap2::MmapMut;

/// Octets, all 0 at first.
#[derive(Debug)]
pub enum Memory {
    /// Pages of its own.
    Mapped(MmapMut),
    /// Where the system has no more of those.
    Heap(Vec<u8>),
}

impl Memory {
    /// So many.
    pub fn new(octets: usize) -> Memory {
        MmapMut::map_anon(octets).map_or_else(|_| Memory::Heap(vec![0; octets]), Memory::Mapped)
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        match self {
            Memory::Mapped(octets) => octets,
            Memory::Heap(octets) => octets,
        }
    }
}

impl AsMut<[u8]> for Memory {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Mapped(octets) => octets,
            Memory::Heap(octets) => octets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn resident_mib() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size() / MIB
    }

    /// Not the second time either, when memory of that size has been used before.
    #[test]
    fn what_is_not_written_to_is_not_there() {
        let before = resident_mib();
        for _ in 0..2 {
            let mut all: Vec<Memory> = (0..64).map(|_| Memory::new(4 * MIB)).collect();
            assert!(all.iter().all(|m| m.as_ref().len() == 4 * MIB));
            assert!(resident_mib() < before + 64, "of 256 MiB");
            all.iter_mut().for_each(|m| m.as_mut().fill(1));
        }
        let again = Memory::new(4 * MIB);
        assert!(again.as_ref().iter().all(|octet| *octet == 0));
    }
}

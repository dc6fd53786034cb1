//! The kernel's own type information (BTF), as far as it takes to find a function and what its arguments are
//! (Documentation/bpf/btf.rst of Linux 6.1).
//!
//! Nothing is indexed: a kernel has some 100,000 types, and a handful of them is looked up once.

/// First two octets.
const MAGIC: u16 = 0xeb9f;
/// Kinds of types that are of interest.
const PTR: u8 = 2;
const STRUCT: u8 = 4;
const TYPEDEF: u8 = 8;
const VOLATILE: u8 = 9;
const CONST: u8 = 10;
const RESTRICT: u8 = 11;
const FUNC: u8 = 12;
const FUNC_PROTO: u8 = 13;
const TYPE_TAG: u8 = 18;
/// Longest chain of types that say something about another.
const DEEPEST: usize = 8;

/// Why octets are no type information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// Something else, or that of another kind of processor.
    #[error("this is no type information of this kind of processor")]
    NotBtf,
    /// It ends too early, or says what cannot be.
    #[error("the type information is damaged at octet {0}")]
    Damaged(usize),
}

/// The types of the kernel, or of a module on top of them.
#[derive(Debug, Clone, Copy)]
pub struct Btf<'a> {
    base: Option<&'a Btf<'a>>,
    types: &'a [u8],
    strings: &'a [u8],
    /// Number of the first type, and of the one after the last.
    first: u32,
    end: u32,
    /// Place of the first string.
    first_string: u32,
}

/// A type.
#[derive(Debug, Clone, Copy)]
struct Type<'a> {
    kind: u8,
    name: u32,
    /// Size, or the type that it is about.
    other: u32,
    rest: &'a [u8],
}

impl<'a> Btf<'a> {
    /// Reads the types of the kernel itself, or those of a module on top of them.
    ///
    /// # Errors
    /// [`BtfError`].
    pub fn parse(octets: &'a [u8], base: Option<&'a Btf<'a>>) -> Result<Btf<'a>, BtfError> {
        let magic = octets.first_chunk().map(|o| u16::from_ne_bytes(*o));
        if magic != Some(MAGIC) {
            return Err(BtfError::NotBtf);
        }
        let field = |at| word(octets, at).ok_or(BtfError::Damaged(octets.len()));
        let head = field(4)?;
        let section = |at: usize| {
            let (from, length) = (field(at)?, field(at + 4)?);
            let from = (head as usize).checked_add(from as usize);
            let end = from.and_then(|f| f.checked_add(length as usize));
            let found = from.zip(end).and_then(|(from, end)| octets.get(from..end));
            found.ok_or(BtfError::Damaged(at))
        };
        let (types, strings) = (section(8)?, section(16)?);
        let first = base.map_or(1, |b| b.end);
        let mut btf = Btf {
            base,
            types,
            strings,
            first,
            end: first,
            first_string: base.map_or(0, |b| b.first_string.saturating_add(b.strings.len() as u32)),
        };
        let mut at = 0;
        while at < types.len() {
            let (_, next) = one(types, at).ok_or(BtfError::Damaged(at))?;
            at = next;
            btf.end = btf.end.checked_add(1).ok_or(BtfError::Damaged(at))?;
        }
        Ok(btf)
    }

    /// Number of the function of this name among the types of this module (or kernel) itself.
    pub fn function(&self, name: &str) -> Option<u32> {
        let is_it = |(_, t): &(u32, Type<'_>)| t.kind == FUNC && self.name(t.name) == Some(name.as_bytes());
        self.all().find(is_it).map(|(id, _)| id)
    }

    /// Name of the structure that an argument of a function is the address of. `None` if it is no such thing.
    pub fn argument(&self, function: u32, n: usize) -> Option<&'a str> {
        let function = self.get(function).filter(|t| t.kind == FUNC)?;
        let prototype = self.get(function.other).filter(|t| t.kind == FUNC_PROTO)?;
        let address = self.plain(word(prototype.rest, 8 * n + 4)?)?;
        if address.kind != PTR {
            return None;
        }
        let structure = self.plain(address.other).filter(|t| t.kind == STRUCT)?;
        std::str::from_utf8(self.name(structure.name)?).ok()
    }

    /// A type without what is only said about it.
    fn plain(&self, mut id: u32) -> Option<Type<'a>> {
        for _ in 0..DEEPEST {
            let found = self.get(id)?;
            if !matches!(found.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG) {
                return Some(found);
            }
            id = found.other;
        }
        None
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        match self.base {
            Some(base) if id < self.first => base.get(id),
            _ => self.all().find(|(n, _)| *n == id).map(|(_, t)| t),
        }
    }

    fn all(&self) -> impl Iterator<Item = (u32, Type<'a>)> + use<'a> {
        let (types, first) = (self.types, self.first);
        let mut at = 0;
        let list = std::iter::from_fn(move || {
            let (found, next) = one(types, at)?;
            at = next;
            Some(found)
        });
        (first..).zip(list)
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        if at < self.first_string {
            return self.base?.name(at);
        }
        let rest = self.strings.get((at - self.first_string) as usize..)?;
        rest.split(|octet| *octet == 0).next()
    }
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

/// The type at a place, and the place of the next one.
fn one(types: &[u8], at: usize) -> Option<(Type<'_>, usize)> {
    let info = word(types, at + 4)?;
    let (kind, count) = ((info >> 24 & 0x1f) as u8, (info & 0xffff) as usize);
    let more = match kind {
        1 | 14 | 17 => 4,                   // integer, variable, tag of a declaration
        3 => 12,                            // array
        STRUCT | 5 | 15 | 19 => 12 * count, // structure, union, section, enumeration of 64 bits
        6 | FUNC_PROTO => 8 * count,        // enumeration, prototype
        PTR | 7..=12 | 16 | TYPE_TAG => 0,
        _ => return None,
    };
    let end = at + 12 + more;
    let found = Type {
        kind,
        name: word(types, at)?,
        other: word(types, at + 8)?,
        rest: types.get(at + 12..end)?,
    };
    Some((found, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn octets(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let length = 4 * types.len() as u32;
        let mut all = Vec::new();
        all.extend(MAGIC.to_ne_bytes());
        all.extend([1, 0]);
        let head = [24, 0, length, length, strings.len() as u32];
        all.extend(head.iter().chain(types).flat_map(|w| w.to_ne_bytes()));
        all.extend(strings);
        all
    }

    const fn info(kind: u8, count: u32) -> u32 {
        (kind as u32) << 24 | count
    }

    /// `struct sk_buff { }; struct sk_buff *; enum ..`, and in the module `void send(int, struct sk_buff *const)`.
    fn kernel() -> Vec<u8> {
        let types: [&[u32]; 5] = [
            &[1, info(STRUCT, 1), 8],
            &[9, 3, 0], // a member
            &[0, info(PTR, 0), 1],
            &[0, info(6, 2), 4, 0, 0, 0, 1],
            &[0, info(1, 0), 4, 32],
        ];
        octets(&types.concat(), b"\0sk_buff\0len\0")
    }

    fn module() -> Vec<u8> {
        let types: [&[u32]; 3] = [
            &[0, info(CONST, 0), 2], // 5
            &[0, info(FUNC_PROTO, 2), 0, 0, 4, 0, 5],
            &[13, info(FUNC, 0), 6],
        ];
        octets(&types.concat(), b"send\0")
    }

    #[test]
    fn a_function_of_a_module_is_found_with_its_arguments() {
        let (kernel, module) = (kernel(), module());
        let base = Btf::parse(&kernel, None).unwrap();
        assert_eq!(base.end, 5);
        let btf = Btf::parse(&module, Some(&base)).unwrap();
        let send = btf.function("send").unwrap();
        assert_eq!(send, 7);
        assert_eq!(btf.argument(send, 1), Some("sk_buff"));
        assert_eq!((btf.argument(send, 0), btf.argument(send, 2)), (None, None));
        assert_eq!((btf.function("receive"), base.function("send")), (None, None));
        assert_eq!(btf.argument(1, 0), None, "no function");
    }

    #[test]
    fn chains_that_do_not_end() {
        let types: [&[u32]; 3] = [
            &[0, info(CONST, 0), 1],
            &[0, info(FUNC_PROTO, 1), 0, 0, 1],
            &[0, info(FUNC, 0), 2],
        ];
        let ring = octets(&types.concat(), b"\0");
        assert_eq!(Btf::parse(&ring, None).unwrap().argument(3, 0), None);
    }

    #[test]
    fn what_it_is_not() {
        assert_eq!(Btf::parse(&[], None).unwrap_err(), BtfError::NotBtf);
        assert_eq!(Btf::parse(b"\x7fELF", None).unwrap_err(), BtfError::NotBtf);
        let whole = kernel();
        for end in 2..whole.len() {
            assert!(Btf::parse(&whole[..end], None).is_err(), "{end}");
        }
    }

    /// That of the kernel the test runs on, if it tells: every function is found again under its number.
    #[test]
    fn this_kernel() {
        let Ok(octets) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            return eprintln!("skipped: this kernel tells no types");
        };
        let btf = Btf::parse(&octets, None).unwrap();
        let send = btf.function("netif_receive_skb").unwrap();
        assert_eq!(btf.argument(send, 0), Some("sk_buff"));
    }

    proptest! {
        #[test]
        fn any_octets(mut octets in proptest::collection::vec(any::<u8>(), 0..300), head in any::<bool>()) {
            if head && octets.len() > 8 {
                octets[..2].copy_from_slice(&MAGIC.to_ne_bytes());
                octets[4..8].copy_from_slice(&24_u32.to_ne_bytes());
            }
            look(&octets);
        }

        #[test]
        fn damaged(at in 0_usize..90, octet in any::<u8>()) {
            let mut octets = kernel();
            let at = at % octets.len();
            octets[at] = octet;
            look(&octets);
        }
    }

    fn look(octets: &[u8]) {
        if let Ok(base) = Btf::parse(octets, None) {
            let module = module();
            for btf in [Some(base), Btf::parse(&module, Some(&base)).ok()]
                .into_iter()
                .flatten()
            {
                let found = btf.function("send").unwrap_or(1);
                for n in 0..3 {
                    let _ = btf.argument(found, n);
                }
            }
        }
    }
}

//! An object file: its sections, symbols and relocations.
//!
//! *Source.* System V ABI, AMD64 Architecture Processor Supplement, section 4.4 (relocation).

use crate::lines::Lines;
use object::elf;
use object::read::elf::ElfFile64;
use object::{
    Endianness, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionFlags, SymbolKind, SymbolSection,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Larger objects than this are not read.
pub(crate) const MAX_SECTION: u64 = 1 << 26;

/// The name of the section of tentative definitions of C.
pub(crate) const COMMON: &str = "COMMON";

/// Sections with functions, or lists of functions, that run before `main` begins or after it has ended.
const CONSTRUCTORS: [&str; 7] =
    [".preinit_array", ".init_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini"];

/// A place in a section, by the index of the section.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SectionOffset {
    pub(crate) section: usize,
    pub(crate) offset: i64,
}

/// What a section is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SectionKind {
    Code,
    Data,
    ReadOnly,
    ThreadLocal,
    /// Debug information and the like.
    Other,
}

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: SectionKind,
    pub(crate) bytes: Vec<u8>,
    pub(crate) align: u64,
    pub(crate) relocations: BTreeMap<i64, Relocation>,
}

/// What is to be put at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Relocation {
    pub(crate) how: How,
    pub(crate) target: Target,
    pub(crate) addend: i64,
}

/// How the linker computes what it puts at a place, as far as this is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// The address: 64 bits.
    Absolute64,
    /// The address: 32 bits, which the processor extends with zeros.
    Absolute32,
    /// The address: 32 bits, which the processor extends with the sign.
    Absolute32Signed,
    /// The address relative to the place: 32 bits.
    Relative32,
    /// The place of the address in the global offset table, relative to the place.
    TableEntry,
    /// The place in the global offset table of the position of a thread-local variable, relative to the place.
    ThreadTableEntry,
    /// The position of a thread-local variable: 32 bits.
    ThreadPosition32,
    /// Anything else, by its number in the ABI.
    Other(u32),
}

impl How {
    fn of(number: u32) -> How {
        match number {
            1 => How::Absolute64,
            // A function may be reached through a table of jumps, which makes no difference.
            2 | 4 => How::Relative32,
            9 | 41 | 42 => How::TableEntry,
            10 => How::Absolute32,
            11 => How::Absolute32Signed,
            22 => How::ThreadTableEntry,
            23 => How::ThreadPosition32,
            other => How::Other(other),
        }
    }

    /// Whether it is about thread-local variables.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(self, How::ThreadTableEntry | How::ThreadPosition32)
    }
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            How::Absolute64 => "R_X86_64_64",
            How::Absolute32 => "R_X86_64_32",
            How::Absolute32Signed => "R_X86_64_32S",
            How::Relative32 => "R_X86_64_PC32",
            How::TableEntry => "R_X86_64_GOTPCREL",
            How::ThreadTableEntry => "R_X86_64_GOTTPOFF",
            How::ThreadPosition32 => "R_X86_64_TPOFF32",
            How::Other(19..=21) => {
                "R_X86_64_TLSGD, TLSLD or DTPOFF32 (of a thread's variables in shared libraries)"
            }
            How::Other(number) => return write!(f, "number {number}"),
        })
    }
}

/// What a relocation refers to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    /// A place of the same file: the beginning of a section.
    Place(SectionOffset),
    /// A place of the same file that a symbol names. What is so many bytes further on belongs to this symbol, even if
    /// another one begins there.
    Symbol(SectionOffset),
    /// A symbol that another file defines.
    External(String),
}

impl Target {
    /// The place in the same file that is so many bytes further on.
    pub(crate) fn place(&self, by: i64) -> Option<SectionOffset> {
        match self {
            Target::Place(place) | Target::Symbol(place) => Some(*place + by),
            Target::External(_) => None,
        }
    }

    /// What is so many bytes further on, if it is in the same file. A function has no names inside.
    pub(crate) fn moved(&self, by: i64) -> Target {
        self.place(by).map_or_else(|| self.clone(), Target::Place)
    }
}

/// A name of a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) place: SectionOffset,
    pub(crate) size: i64,
    pub(crate) function: bool,
    pub(crate) global: bool,
    pub(crate) weak: bool,
}

/// An object file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) sections: Vec<Section>,
    pub(crate) symbols: Vec<Symbol>,
    /// The lines of the source program, or of the assembly.
    pub(crate) lines: Lines,
    /// Instructions of assembly that were not read, as they are written.
    pub(crate) unread: BTreeMap<SectionOffset, String>,
    /// The text of assembly that does not refer to the lines of a source program: `lines` are its own.
    pub(crate) text: Option<String>,
}

/// Where a tentative definition goes, after the end of the others, and the end after it. No place is more aligned than
/// its symbol asks for.
pub(crate) fn next_common(end: i64, size: i64, align: i64) -> (i64, i64) {
    let align = 1 << align.clamp(1, 4096).ilog2();
    let at = (end + align - 1) / (2 * align) * (2 * align) + align;
    (at, at.saturating_add(size))
}

/// Fails with this message if there are no functions.
pub(crate) fn has_functions(image: &Image, otherwise: &str) -> Result<(), String> {
    match image.symbols.iter().any(|symbol| symbol.function) {
        true => Ok(()),
        false => Err(otherwise.to_owned()),
    }
}

impl Image {
    /// Reads an object file. Fails with a sentence that says what is wrong with it.
    pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Image, String> {
        if !bytes.starts_with(&elf::ELFMAG) {
            return Err(match bytes {
                [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => {
                    "this is an archive of object files; extract the one to check with `ar x`".to_owned()
                }
                [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] => {
                    "this is an object file for macOS; only ELF for x86-64 is read".to_owned()
                }
                [b'B', b'C', 0xc0, 0xde, ..] => {
                    "this is LLVM bitcode, not machine code; compile without -flto".to_owned()
                }
                _ => "this is not an ELF object file".to_owned(),
            });
        }
        if bytes.get(4) != Some(&elf::ELFCLASS64.0) || bytes.get(5) != Some(&elf::ELFDATA2LSB.0) {
            return Err("this object file is not for x86-64".to_owned());
        }
        let broken = |error: object::Error| format!("the object file is broken: {error}");
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes).map_err(broken)?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err("this object file is not for x86-64".to_owned());
        }
        if file.kind() != ObjectKind::Relocatable {
            return Err(
                "this is a linked program or library; give the object file that `cc -c` writes".to_owned()
            );
        }
        let mut image = Image {
            name: name.to_owned(),
            sections: Vec::new(),
            symbols: Vec::new(),
            lines: Lines::default(),
            unread: BTreeMap::new(),
            text: None,
        };
        let mut numbers = BTreeMap::new();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let section_name = section.name().map_err(broken)?.to_owned();
            if section.size() > MAX_SECTION {
                return Err(format!("the section `{section_name}` is larger than {} MiB", MAX_SECTION >> 20));
            }
            let has = |flag: elf::SectionFlags| sh_flags.0 & flag.0 != 0;
            let allocated = has(elf::SHF_ALLOC);
            let kind = if !allocated {
                SectionKind::Other
            } else if has(elf::SHF_EXECINSTR) {
                SectionKind::Code
            } else if has(elf::SHF_TLS) {
                SectionKind::ThreadLocal
            } else if has(elf::SHF_WRITE) && !section_name.starts_with(".data.rel.ro") {
                SectionKind::Data
            } else {
                SectionKind::ReadOnly
            };
            let mut data = match allocated {
                true => section.data().map_err(broken)?.to_vec(),
                // Without debug information there are no lines. It may be compressed.
                false if section_name.starts_with(".debug") => {
                    section.uncompressed_data().map(|data| data.into_owned()).unwrap_or_default()
                }
                false => Vec::new(),
            };
            if data.is_empty() && allocated {
                data = vec![0; usize::try_from(section.size()).unwrap_or(0)];
            }
            numbers.insert(section.index().0, image.sections.len());
            image.sections.push(Section {
                name: section_name,
                kind,
                bytes: data,
                align: section.align().max(1),
                relocations: BTreeMap::new(),
            });
        }
        // Tentative definitions of C have a section of their own.
        let common = image.sections.len();
        let mut common_size = 0i64;
        let mut places: BTreeMap<usize, (SectionOffset, Option<String>)> = BTreeMap::new();
        for symbol in file.symbols() {
            let symbol_name = symbol.name().map_err(broken)?.to_owned();
            let size = i64::try_from(symbol.size()).map_err(|_| "a symbol is too large".to_owned())?;
            let place = match symbol.section() {
                SymbolSection::Section(section) => {
                    let Some(&section) = numbers.get(&section.0) else { continue };
                    let offset = i64::try_from(symbol.address());
                    let offset = offset.map_err(|_| format!("`{symbol_name}` has no place"))?;
                    SectionOffset { section, offset }
                }
                SymbolSection::Common => {
                    // Such a symbol has its alignment where others have their address.
                    let align = symbol.elf_symbol().st_value.get(Endianness::Little);
                    let align = i64::try_from(align).unwrap_or(1);
                    let (offset, end) = next_common(common_size, size, align);
                    common_size = end;
                    if common_size > MAX_SECTION as i64 {
                        return Err("the common variables are too large".to_owned());
                    }
                    SectionOffset { section: common, offset }
                }
                _ => continue,
            };
            // Another file may define a function of this name too, which then replaces a weak one.
            let replaceable = symbol.is_weak().then(|| symbol_name.clone());
            places.insert(symbol.index().0, (place, replaceable));
            if symbol.elf_symbol().st_type() == elf::STT_GNU_IFUNC {
                return Err(format!(
                    "which function `{symbol_name}` is, is decided when the program starts (`ifunc`)"
                ));
            }
            let function = symbol.kind() == SymbolKind::Text;
            let (global, weak) = (symbol.is_global(), symbol.is_weak());
            let named = matches!(
                symbol.kind(),
                SymbolKind::Text
                    | SymbolKind::Data
                    | SymbolKind::Tls
                    | SymbolKind::Unknown
                    | SymbolKind::Label
            );
            if named && !symbol_name.is_empty() {
                image.symbols.push(Symbol { name: symbol_name, place, size, function, global, weak });
            }
        }
        if common_size > 0 {
            let bytes = vec![0; usize::try_from(common_size).unwrap_or(0)];
            let (name, kind, align) = (COMMON.to_owned(), SectionKind::Data, 4096);
            image.sections.push(Section { name, kind, bytes, align, relocations: BTreeMap::new() });
        }
        image.symbols.retain(|symbol| symbol.place.section < image.sections.len());
        for section in file.sections() {
            let Some(&number) = numbers.get(&section.index().0) else { continue };
            for (offset, relocation) in section.relocations() {
                // What is not loaded is debug information.
                let loaded = image.sections[number].kind != SectionKind::Other;
                let wrong = |what: &str| {
                    format!("a relocation in the section `{}` {what}", image.sections[number].name)
                };
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                let target = match relocation.target() {
                    RelocationTarget::Symbol(index) => {
                        let symbol = file.symbol_by_index(index).map_err(broken)?;
                        match places.get(&index.0) {
                            Some((place, None)) if symbol.kind() == SymbolKind::Section => {
                                Target::Place(*place)
                            }
                            Some((place, None)) => Target::Symbol(*place),
                            Some((_, Some(name))) => Target::External(name.clone()),
                            None if symbol.is_undefined() => {
                                Target::External(symbol.name().map_err(broken)?.to_owned())
                            }
                            None if loaded => return Err(wrong("refers to a symbol without a place")),
                            None => continue,
                        }
                    }
                    _ if loaded => return Err(wrong("refers to no symbol")),
                    _ => continue,
                };
                if loaded && relocation.has_implicit_addend() {
                    return Err(wrong("is of a form that x86-64 does not have"));
                }
                let offset =
                    i64::try_from(offset).map_err(|_| "a relocation is outside its section".to_owned())?;
                let (how, addend) = (How::of(r_type.0), relocation.addend());
                let relocations = &mut image.sections[number].relocations;
                if relocations.insert(offset, Relocation { how, target, addend }).is_some() && loaded {
                    let name = &image.sections[number].name;
                    return Err(format!("two relocations at the same place of the section `{name}`"));
                }
            }
        }
        has_functions(
            &image,
            "the object file has no symbols of functions: it was stripped, or has no code",
        )?;
        image.lines = Lines::read(&image);
        Ok(image)
    }

    /// Fails if functions of the file run before `main` begins or after it has ended.
    pub(crate) fn has_no_constructors(&self) -> Result<(), String> {
        let is_list = |section: &&Section| {
            let named = |list: &str| {
                section.name.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            CONSTRUCTORS.into_iter().any(named) && !section.bytes.is_empty()
        };
        match self.sections.iter().find(is_list) {
            None => Ok(()),
            Some(list) => Err(format!(
                "the section `{}` has functions that run before `main` begins or after it has ended",
                list.name
            )),
        }
    }

    /// Assembly may not say how long a function is. Then it ends where the next one begins.
    pub(crate) fn close_functions(&mut self) {
        let starts: BTreeSet<SectionOffset> =
            self.symbols.iter().filter(|symbol| symbol.function).map(|symbol| symbol.place).collect();
        for symbol in self.symbols.iter_mut().filter(|symbol| symbol.function && symbol.size == 0) {
            let next = starts.range((Bound::Excluded(symbol.place), Bound::Unbounded)).next();
            let end = match next {
                Some(next) if next.section == symbol.place.section => next.offset,
                _ => self.sections[symbol.place.section].bytes.len() as i64,
            };
            symbol.size = end.saturating_sub(symbol.place.offset).max(0);
        }
    }

    pub(crate) fn section(&self, place: SectionOffset) -> &Section {
        &self.sections[place.section]
    }

    /// The function that contains a place.
    pub(crate) fn function_at(&self, place: SectionOffset) -> Option<&Symbol> {
        self.symbols.iter().filter(|symbol| symbol.function && symbol.place.section == place.section).find(
            |symbol| {
                let start = symbol.place.offset;
                start == place.offset
                    || (start < place.offset && place.offset < start.saturating_add(symbol.size))
            },
        )
    }
}

/// A place that is so many bytes further on.
impl std::ops::Add<i64> for SectionOffset {
    type Output = SectionOffset;

    fn add(self, by: i64) -> SectionOffset {
        SectionOffset { offset: self.offset.wrapping_add(by), ..self }
    }
}

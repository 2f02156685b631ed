//! The version that the processes of a group compare.

use std::io::Read;

/// The version number, and a hash of the executable file: two builds of one version may number things differently.
pub fn version() -> String {
    let hash = std::fs::File::open("/proc/self/exe")
        .or_else(|_| std::fs::File::open(std::env::current_exe()?))
        .and_then(hash_of);
    match hash {
        Ok(hash) => format!("{} ({hash:016x})", env!("PALISADE_VERSION")),
        Err(_) => env!("PALISADE_VERSION").to_owned(),
    }
}

/// A hash that is not meant to resist anyone.
fn hash_of(mut file: impl Read) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let (mut hash, mut filled) = (0xcbf2_9ce4_8422_2325_u64, 0);
    loop {
        let count = file.read(&mut buffer[filled..])?;
        filled += count;
        if count > 0 && filled < buffer.len() {
            continue;
        }
        for bytes in buffer[..filled].chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        if count == 0 {
            return Ok(hash);
        }
        filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let bytes = vec![7_u8; 200_000];
        let hash = hash_of(bytes.as_slice()).expect("memory can be read");
        for changed in [0, 65_535, 65_536, 199_999] {
            let mut other = bytes.clone();
            other[changed] ^= 1;
            assert_ne!(hash_of(other.as_slice()).expect("memory can be read"), hash, "byte {changed}");
        }
    }
}

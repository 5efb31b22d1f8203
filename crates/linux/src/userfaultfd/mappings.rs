//! The mappings of a process, read without allocating.

/// Calls `found` with start and end of every mapping that is of no file, ascending. `path`: of `/proc/PID/maps`, ending in 0.
pub fn anonymous(path: &[u8], buffer: &mut [u8], mut found: impl FnMut(u64, u64)) {
    // SAFETY: the path ends in 0, and the buffer takes what is read.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        let mut filled = 0;
        loop {
            let free = &mut buffer[filled..];
            let got = libc::read(file, free.as_mut_ptr().cast(), free.len());
            if got <= 0 {
                break;
            }
            filled += got as usize;
            let mut line = 0;
            while let Some(length) = buffer[line..filled].iter().position(|b| *b == b'\n') {
                if let Some((start, end)) = mapping(&buffer[line..line + length]) {
                    found(start, end);
                }
                line += length + 1;
            }
            buffer.copy_within(line..filled, 0);
            filled -= line;
        }
        libc::close(file);
    }
}

/// Start and end by a line of `maps`, if it is of no file.
fn mapping(line: &[u8]) -> Option<(u64, u64)> {
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let mut bounds = words.next()?.split(|b| *b == b'-');
    let (start, end) = (hexadecimal(bounds.next()?)?, hexadecimal(bounds.next()?)?);
    let inode = words.nth(3)?; // after rights, offset and device
    (inode == b"0").then_some((start, end))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        Some(value << 4 | u64::from((*digit as char).to_digit(16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let file = b"55d0a0000000-55d0a0021000 r--p 00001000 08:01 1234                       /usr/bin/x";
        assert_eq!(mapping(file), None);
        assert_eq!(
            mapping(b"7f00-7fff rw-p 00000000 00:00 0 "),
            Some((0x7f00, 0x7fff))
        );
        assert_eq!(
            mapping(b"7f00-7fff rw-p 00000000 00:00 0                          [heap]"),
            Some((0x7f00, 0x7fff))
        );
        assert_eq!(mapping(b""), None);
    }

    #[test]
    fn small_buffers_find_all_of_our_own() {
        let mut all = Vec::new();
        anonymous(b"/proc/self/maps\0", &mut [0; 1 << 16], |start, end| {
            all.push((start, end));
        });
        let mut again = Vec::new();
        anonymous(b"/proc/self/maps\0", &mut [0; 400], |start, end| {
            again.push((start, end));
        });
        assert!(all.len() > 3, "{all:?}");
        // Other tests map memory meanwhile.
        assert!(again.len() + 8 >= all.len() && again.is_sorted());
    }
}

//! Addresses and bits, as the server writes them.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Misfit, exactly};

/// `inet` and `cidr`: family, bits of the mask, is it a cidr, bytes of the address, the address.
pub(super) fn write_inet(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let (head, address) = bytes.split_first_chunk::<4>().ok_or(Misfit::Malformed)?;
    let [family, mask, is_cidr, length] = *head;
    if usize::from(length) != address.len() {
        return Err(Misfit::Malformed);
    }
    let full = match family {
        2 => {
            let _ = write!(into, "{}", Ipv4Addr::from(exactly::<4>(address)?));
            32
        }
        3 => {
            let _ = write!(into, "{}", Ipv6Addr::from(exactly::<16>(address)?));
            128
        }
        _ => return Err(Misfit::Malformed),
    };
    if is_cidr != 0 || mask != full {
        let _ = write!(into, "/{mask}");
    }
    Ok(())
}

/// `macaddr` and `macaddr8`.
pub(super) fn write_mac(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    if bytes.len() != 6 && bytes.len() != 8 {
        return Err(Misfit::Malformed);
    }
    for (place, byte) in bytes.iter().enumerate() {
        let _ = write!(into, "{}{byte:02x}", if place == 0 { "" } else { ":" });
    }
    Ok(())
}

/// `bit` and `bit varying`: how many, and the bits.
pub(super) fn write_bits(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let (count, bits) = bytes.split_first_chunk::<4>().ok_or(Misfit::Malformed)?;
    let count = usize::try_from(i32::from_be_bytes(*count)).map_err(|_| Misfit::Malformed)?;
    if count.div_ceil(8) != bits.len() {
        return Err(Misfit::Malformed);
    }
    let all = bits.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
    into.extend(all.take(count).map(|bit| if bit { '1' } else { '0' }));
    Ok(())
}

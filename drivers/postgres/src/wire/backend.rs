//! The server's messages, without I/O: a letter, a length, and what stands in them.

use bytes::{Buf, Bytes, BytesMut};

use super::error::{ServerError, WireError};

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) body: Bytes,
}

/// The server cannot send more in one message.
const BODY_BYTES_MAX: usize = 1 << 30;
const HEAD_BYTES: usize = 5;

/// Takes the first message off the buffer, if all of it has come.
pub(super) fn take(buffer: &mut BytesMut) -> Result<Option<Message>, WireError> {
    let Some((head, _)) = buffer.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let [kind, l0, l1, l2, l3] = *head;
    let length = u32::from_be_bytes([l0, l1, l2, l3]);
    let body = usize::try_from(length).ok().and_then(|length| length.checked_sub(4)).filter(|body| *body <= BODY_BYTES_MAX);
    let Some(body) = body else { return Err(WireError::Protocol(format!("a message says that it is {length} bytes long"))) };
    if buffer.len() < HEAD_BYTES + body {
        return Ok(None);
    }
    buffer.advance(HEAD_BYTES);
    Ok(Some(Message { kind, body: buffer.split_to(body).freeze() }))
}

/// An ErrorResponse or a NoticeResponse: fields, each a letter and a text.
pub(super) fn report(body: &[u8]) -> ServerError {
    let mut report = ServerError { code: String::new(), message: String::new() };
    let mut rest = body;
    while let Some((kind, after)) = rest.split_first().filter(|(kind, _)| **kind != 0) {
        let end = memchr::memchr(0, after).unwrap_or(after.len());
        let text = String::from_utf8_lossy(&after[..end]).into_owned();
        match kind {
            b'C' => report.code = text,
            b'M' => report.message = text,
            _ => {}
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    report
}

/// A DataRow in text form.
pub(super) fn data_row(body: &[u8]) -> Result<Vec<Option<String>>, WireError> {
    let short = || WireError::Protocol("a row ends too early".into());
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(short)?;
    let count = usize::from(u16::from_be_bytes(*count));
    let mut values = Vec::with_capacity(count.min(rest.len() / 4));
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        rest = after;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            values.push(None);
            continue;
        }
        let (value, after) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)).ok_or_else(short)?;
        rest = after;
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_once_all_of_it_has_come() {
        let whole = [b'Z', 0, 0, 0, 5, b'I', b'E'];
        for came in 0..6 {
            let mut buffer = BytesMut::from(&whole[..came]);
            assert_eq!(take(&mut buffer).unwrap(), None);
            assert_eq!(&buffer[..], &whole[..came]);
        }
        let mut buffer = BytesMut::from(&whole[..]);
        assert_eq!(take(&mut buffer).unwrap(), Some(Message { kind: b'Z', body: Bytes::from_static(b"I") }));
        assert_eq!(&buffer[..], b"E");
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_and_nothing_is_reserved_for_it() {
        for length in [0_u32, 3, 0x4000_0005, u32::MAX] {
            let mut buffer = BytesMut::from(&b"d"[..]);
            buffer.extend_from_slice(&length.to_be_bytes());
            assert!(matches!(take(&mut buffer), Err(WireError::Protocol(_))), "{length}");
        }
        let mut buffer = BytesMut::from(&b"d"[..]);
        buffer.extend_from_slice(&0x3FFF_FFFF_u32.to_be_bytes());
        assert_eq!(take(&mut buffer).unwrap(), None);
        assert!(buffer.capacity() < 1024);
    }

    #[test]
    fn of_a_report_the_code_and_the_message_are_kept_and_the_detail_is_not() {
        let report = report(b"SERROR\0VERROR\0C42704\0Mslot does not exist\0DKey (id)=(5)\0\0");
        assert_eq!(report, ServerError { code: "42704".into(), message: "slot does not exist".into() });
    }

    #[test]
    fn a_report_that_ends_anywhere_is_read_as_far_as_it_goes() {
        assert_eq!(report(b"C4270").code, "4270");
        assert_eq!(report(b"").code, "");
        assert_eq!(report(b"M").message, "");
    }

    #[test]
    fn a_row_has_nulls_and_texts() {
        let row = data_row(b"\0\x02\xff\xff\xff\xff\0\0\0\x02ab").unwrap();
        assert_eq!(row, [None, Some("ab".into())]);
        for cut in 0..13 {
            assert!(data_row(&b"\0\x02\xff\xff\xff\xff\0\0\0\x02ab"[..cut.min(11)]).is_err());
        }
    }
}

//! Thrift's compact protocol, as far as Parquet's metadata need it.

/// Writes one struct; nested ones are written by values of their own.
#[derive(Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub fn i32(self, id: i16, value: i32) -> Struct {
        self.field(id, I32, &zigzag(value.into()))
    }

    pub fn i64(self, id: i16, value: usize) -> Struct {
        self.field(id, I64, &zigzag(value as i64))
    }

    pub fn text(self, id: i16, text: &str) -> Struct {
        self.field(id, BINARY, &binary(text))
    }

    pub fn group(self, id: i16, value: Struct) -> Struct {
        self.field(id, STRUCT, &value.done())
    }

    pub fn i32s(self, id: i16, values: &[i32]) -> Struct {
        let items: Vec<_> = values.iter().map(|&value| zigzag(value.into())).collect();
        self.list(id, I32, &items)
    }

    pub fn texts(self, id: i16, values: &[&str]) -> Struct {
        let items: Vec<_> = values.iter().map(|text| binary(text)).collect();
        self.list(id, BINARY, &items)
    }

    pub fn groups(self, id: i16, values: Vec<Struct>) -> Struct {
        let items: Vec<_> = values.into_iter().map(Struct::done).collect();
        self.list(id, STRUCT, &items)
    }

    /// The bytes of the struct.
    pub fn done(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// Fields are written in the order of their ids, each as a step from the one before.
    fn field(mut self, id: i16, kind: u8, value: &[u8]) -> Struct {
        match id - self.last {
            step @ 1..=15 => self.bytes.push((step as u8) << 4 | kind),
            _ => {
                self.bytes.push(kind);
                self.bytes.extend(zigzag(id.into()));
            }
        }
        self.bytes.extend(value);
        self.last = id;
        self
    }

    fn list(self, id: i16, kind: u8, items: &[Vec<u8>]) -> Struct {
        let mut value = match items.len() {
            n @ ..15 => vec![(n as u8) << 4 | kind],
            n => [vec![0xf0 | kind], varint(n as u64)].concat(),
        };
        items.iter().for_each(|item| value.extend(item));
        self.field(id, LIST, &value)
    }
}

fn binary(text: &str) -> Vec<u8> {
    [&varint(text.len() as u64), text.as_bytes()].concat()
}

fn zigzag(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

/// Seven bits per byte, the lowest first; also protocol buffers' and Parquet's.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_those_of_the_specification() {
        assert_eq!(varint(300), [0xac, 0x02]);
        assert_eq!((zigzag(0), zigzag(-1), zigzag(1)), (vec![0], vec![1], vec![2]));
        let inner = Struct::default().i32(1, 1);
        let bytes = Struct::default().i32(1, 150).text(4, "ab").group(20, inner).done();
        assert_eq!(bytes, [0x15, 0xac, 0x02, 0x38, 2, b'a', b'b', 0x0c, 40, 0x15, 2, 0, 0]);
        let long = Struct::default().i32s(1, &[0; 20]).done();
        assert_eq!(long[..3], [0x19, 0xf5, 20]);
        assert_eq!(Struct::default().texts(2, &["x"]).done(), [0x29, 0x18, 1, b'x', 0]);
    }
}

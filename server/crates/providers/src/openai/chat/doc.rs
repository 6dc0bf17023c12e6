//! JSON, written member by member into the bytes that go out.

use serde::Serialize;

/// An object that is being written. It is whole once it is closed.
pub(in crate::openai) struct Object<'a> {
    out: &'a mut Vec<u8>,
    has_members: bool,
}

impl<'a> Object<'a> {
    pub(in crate::openai) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            has_members: false,
        }
    }

    /// Writes a name that is plain, and gives where its value goes.
    pub(in crate::openai) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if self.has_members {
            self.out.push(b',');
        }
        self.has_members = true;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(in crate::openai) fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        json(self.name(name), value);
    }

    /// A member whose name somebody else chose.
    pub(in crate::openai) fn put_any<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.has_members {
            self.out.push(b',');
        }
        self.has_members = true;
        json(self.out, name);
        self.out.push(b':');
        json(self.out, value);
    }

    /// Writes nothing where there is nothing.
    pub(in crate::openai) fn some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    pub(in crate::openai) fn object(&mut self, name: &str) -> Object<'_> {
        Object::open(self.name(name))
    }

    pub(in crate::openai) fn list(&mut self, name: &str) -> List<'_> {
        List::open(self.name(name))
    }

    pub(in crate::openai) fn close(self) {
        self.out.push(b'}');
    }
}

/// A list that is being written.
pub(in crate::openai) struct List<'a> {
    out: &'a mut Vec<u8>,
    has_items: bool,
}

impl<'a> List<'a> {
    pub(in crate::openai) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'[');
        Self { out, has_items: false }
    }

    /// Where the next item goes.
    pub(in crate::openai) fn next(&mut self) -> &mut Vec<u8> {
        if self.has_items {
            self.out.push(b',');
        }
        self.has_items = true;
        self.out
    }

    pub(in crate::openai) fn object(&mut self) -> Object<'_> {
        Object::open(self.next())
    }

    pub(in crate::openai) fn close(self) {
        self.out.push(b']');
    }
}

/// Writes one value. Texts, numbers and what was read from JSON can always be written.
pub(in crate::openai) fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// A text that makes its way to quotes in one piece: letters of base64 need no look.
pub(in crate::openai) fn data_url(out: &mut Vec<u8>, media_type: &str, base64: &str) {
    json(out, &format_args!("data:{media_type};base64,{base64}"));
}

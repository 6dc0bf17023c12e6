//! Which variant of a file the client would rather have (RFC 9110, section 12.5.3).

use axum::http::{HeaderMap, header::ACCEPT_ENCODING};

/// A content coding that the web build makes a variant in; the best one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
    Identity,
}

impl Encoding {
    const ALL: [Self; 3] = [Self::Brotli, Self::Gzip, Self::Identity];

    /// As it stands in `Content-Encoding`, where identity never does.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    /// What the variant's file name ends in.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Gzip => ".gz",
            Self::Identity => "",
        }
    }

    fn is_named(self, coding: &str) -> bool {
        coding.eq_ignore_ascii_case(self.name().unwrap_or("identity"))
    }
}

/// The codings to try, in the client's order and then in ours. Identity is always among them: an answer that the client
/// says it cannot read serves it better than a 406.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<Encoding> {
    let wishes: Vec<_> = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(wish)
        .collect();
    let weigh = |encoding: Encoding| {
        let named = wishes.iter().find(|(coding, _)| encoding.is_named(coding));
        let wish = named.or_else(|| wishes.iter().find(|(coding, _)| *coding == "*"));
        // Identity need not be named to be acceptable, but whatever is named goes before it.
        let unnamed = if encoding == Encoding::Identity {
            f32::MIN_POSITIVE
        } else {
            0.0
        };
        (encoding, wish.map_or(unnamed, |(_, weight)| *weight))
    };
    let mut weighed = Encoding::ALL.map(weigh);
    weighed.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let wanted = weighed
        .into_iter()
        .filter(|(encoding, weight)| *weight > 0.0 || *encoding == Encoding::Identity);
    wanted.map(|(encoding, _)| encoding).collect()
}

/// `br;q=0.5` as a coding and its weight. What does not parse was not said.
fn wish(element: &str) -> Option<(&str, f32)> {
    let (coding, parameters) = element.split_once(';').unwrap_or((element, ""));
    let weight = match parameters.trim() {
        "" => 1.0,
        parameter => {
            let (name, weight) = parameter.split_once('=')?;
            let weight: f32 = weight.trim().parse().ok()?;
            (name.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&weight)).then_some(weight)?
        }
    };
    Some((coding.trim(), weight))
}

#[cfg(test)]
mod tests {
    use super::{
        Encoding::{Brotli, Gzip, Identity},
        *,
    };

    #[track_caller]
    fn check(accept: &str, want: &[Encoding]) {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, accept.parse().unwrap())]);
        assert_eq!(accepted(&headers), want, "{accept}");
    }

    #[test]
    fn without_weights_the_smallest_comes_first() {
        check("gzip, deflate, br, zstd", &[Brotli, Gzip, Identity]);
        check("GZIP , Br", &[Brotli, Gzip, Identity]);
        check("gzip", &[Gzip, Identity]);
    }

    #[test]
    fn the_client_weighs() {
        check("br;q=0.5, gzip;q=0.8", &[Gzip, Brotli, Identity]);
        check("br; q=0.1, gzip ;Q=0.1", &[Brotli, Gzip, Identity]);
        check("identity, br;q=0.5", &[Identity, Brotli]);
        check("identity;q=0.2, gzip;q=0.1", &[Identity, Gzip]);
    }

    #[test]
    fn zero_means_no() {
        check("br;q=0, gzip", &[Gzip, Identity]);
        check("br;q=0.0, *", &[Gzip, Identity]);
        check("*;q=0", &[Identity]);
        check("identity;q=0, gzip", &[Gzip, Identity]);
    }

    #[test]
    fn the_star_stands_for_what_is_not_named() {
        check("*", &[Brotli, Gzip, Identity]);
        check("gzip, *;q=0.5", &[Gzip, Brotli, Identity]);
    }

    #[test]
    fn what_cannot_be_read_was_not_said() {
        check("", &[Identity]);
        check("br;q=much, gzip;q=2, ;;", &[Identity]);
        check("br;q=NaN, gzip;v=1", &[Identity]);
        assert_eq!(accepted(&HeaderMap::new()), [Identity]);
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT_ENCODING, "gzip;q=0.5".parse().unwrap());
        headers.append(ACCEPT_ENCODING, "br".parse().unwrap());
        assert_eq!(accepted(&headers), [Brotli, Gzip, Identity]);
    }
}

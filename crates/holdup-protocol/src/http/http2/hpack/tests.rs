//! Blocks of RFC 7541's appendix C, and what must be refused. Its examples fill a dynamic table; those that refer
//! to it are errors here, where there is none.

use super::huffman::tests::encode;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn fields_of(block: &[u8]) -> Result<String, Error> {
    let mut text = String::new();
    unpack(block, &mut Vec::new(), |name, value| {
        text += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
    })?;
    Ok(text)
}

#[test]
fn integers_of_appendix_c1() {
    for (prefix, value, wire) in [(5, 10, "0a"), (5, 1337, "1f9a0a"), (8, 42, "2a")] {
        let mut out = Vec::new();
        put_integer(&mut out, 0, prefix, value);
        assert_eq!(out, bytes(wire));
        assert_eq!(Rest(&out).integer(prefix), Ok(value));
    }
    assert_eq!(Rest(&bytes("1fffffffff7f")).integer(5), Err(Error::Compression), "too long");
    assert_eq!(Rest(&bytes("1f9a")).integer(5), Err(Error::Compression), "cut off");
}

#[test]
fn fields_of_appendix_c2() {
    for (block, field) in [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key: custom-header\n"),
        ("040c2f73616d706c652f70617468", ":path: /sample/path\n"),
        ("100870617373776f726406736563726574", "password: secret\n"),
        ("82", ":method: GET\n"),
    ] {
        assert_eq!(fields_of(&bytes(block)).as_deref(), Ok(field));
    }
}

#[test]
fn requests_of_appendix_c3_and_c4() {
    let fields = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";
    assert_eq!(fields_of(&bytes("828684410f7777772e6578616d706c652e636f6d")).as_deref(), Ok(fields));
    assert_eq!(fields_of(&bytes("828684418cf1e3c2e5f23a6ba0ab90f4ff")).as_deref(), Ok(fields));
    // The second request of either refers to what the first one put into the table.
    assert_eq!(fields_of(&bytes("828684be58086e6f2d6361636865")), Err(Error::Compression));
    assert_eq!(fields_of(&bytes("828684be5886a8eb10649cbf")), Err(Error::Compression));
}

#[test]
fn responses_of_appendix_c5_and_c6() {
    let fields = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                  location: https://www.example.com\n";
    let plain = "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54\
                 6e1768747470733a2f2f7777772e6578616d706c652e636f6d";
    let coded =
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3";
    assert_eq!(fields_of(&bytes(plain)).as_deref(), Ok(fields));
    assert_eq!(fields_of(&bytes(coded)).as_deref(), Ok(fields));
    assert_eq!(fields_of(&bytes("4883640effc1c0bf")), Err(Error::Compression));
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let coded = "77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007";
    assert_eq!(fields_of(&bytes(coded)).as_deref(), Ok(format!("set-cookie: {cookie}\n").as_str()));
    assert_eq!(encode(b"302"), bytes("6402"));
}

#[test]
fn sizes_of_the_table() {
    assert_eq!(fields_of(&bytes("2088")).as_deref(), Ok(":status: 200\n"));
    assert_eq!(fields_of(&bytes("202088")).as_deref(), Ok(":status: 200\n"));
    assert_eq!(fields_of(&bytes("8820")), Err(Error::Compression), "after a field");
    assert_eq!(fields_of(&bytes("3fe11f88")), Err(Error::Compression), "larger than allowed");
}

#[test]
fn invalid_blocks_are_refused() {
    for block in ["80", "be", "ff80", "7f", "00", "0001", "000161", "00016105", "0001610261", "08", "0881ff"] {
        assert_eq!(fields_of(&bytes(block)), Err(Error::Compression), "{block}");
    }
    assert_eq!(fields_of(&[0x88; MAX_HEAD_BYTES]), Err(Error::HeadTooLarge), "a small block of many fields");
    assert_eq!(fields_of(b"").as_deref(), Ok(""));
}

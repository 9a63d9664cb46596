//! A client that may write: topics, records with times of the test's choice, commits, a member of a group.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use holdup_protocol::database::kafka::{Call, Reader, Session, Writer};

use super::PATIENCE;

const PRODUCE: Call = Call::new(0, 3);
const OFFSET_COMMIT: Call = Call::new(8, 2);
const FIND_COORDINATOR: Call = Call::new(10, 0);
const JOIN_GROUP: Call = Call::new(11, 2);
const SYNC_GROUP: Call = Call::new(14, 1);
const CREATE_TOPICS: Call = Call::new(19, 2);
const CREATE_ACLS: Call = Call::new(30, 1);

pub struct Client {
    session: Session,
    stream: TcpStream,
}

impl Client {
    pub fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { session: Session::new(1 << 20), stream }
    }

    fn ask(&mut self, call: Call, body: &Writer) -> Vec<u8> {
        self.session.send(call, body).unwrap();
        let output = self.session.output().to_vec();
        self.stream.write_all(&output).unwrap();
        self.session.consumed(output.len());
        let mut bytes = [0; 4096];
        loop {
            let count = self.stream.read(&mut bytes).unwrap();
            assert!(count > 0, "the broker hung up");
            if let Some(answer) = self.session.feed(&bytes[..count]).unwrap() {
                return answer;
            }
        }
    }

    /// Asks until there is no error: a broker that has just begun refuses for a while.
    fn until(&mut self, call: Call, body: &Writer, error: impl Fn(&mut Reader<'_>) -> i16) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(call, body);
            match error(&mut Reader::new(&answer)) {
                0 => return answer,
                code => assert!(Instant::now() < deadline, "error {code} to {call:?}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    pub fn create(&mut self, topic: &str, partitions: i32) {
        let mut body = Writer::default();
        body.count(1).text(topic).i32(partitions).i16(1).count(0).count(0).i32(30_000).i8(0);
        let error = |reader: &mut Reader<'_>| {
            reader.i32().unwrap();
            reader.list(|reader| Ok((reader.text()?, reader.i16()?, reader.text()?))).unwrap()[0].1
        };
        // 36: it is there already.
        self.until(CREATE_TOPICS, &body, |reader| match error(reader) {
            36 => 0,
            code => code,
        });
    }

    /// Appends one record for each time, in batches.
    pub fn produce(&mut self, topic: &str, partition: i32, times_ms: &[i64]) {
        for times in times_ms.chunks(50) {
            let mut body = Writer::default();
            body.i16(-1).i16(1).i32(30_000).count(1).text(topic).count(1).i32(partition).blob(&batch(times));
            self.until(PRODUCE, &body, |reader| {
                let partition = |reader: &mut Reader<'_>| {
                    let found = (reader.i32()?, reader.i16()?);
                    reader.i64()?;
                    reader.i64()?;
                    Ok(found.1)
                };
                let topics = reader.list(|reader| {
                    reader.text()?;
                    reader.list(partition)
                });
                topics.unwrap()[0][0]
            });
        }
    }

    pub fn commit(&mut self, group: &str, topic: &str, offsets: &[(i32, i64)]) {
        let mut coordinator = Writer::default();
        coordinator.text(group);
        self.until(FIND_COORDINATOR, &coordinator, |reader| reader.i16().unwrap());
        let mut body = Writer::default();
        body.text(group).i32(-1).text("").i64(-1).count(1).text(topic).count(offsets.len());
        for (partition, offset) in offsets {
            body.i32(*partition).i64(*offset).i16(-1);
        }
        self.until(OFFSET_COMMIT, &body, |reader| {
            let topics = reader.list(|reader| {
                reader.text()?;
                reader.list(|reader| Ok((reader.i32()?, reader.i16()?)))
            });
            topics.unwrap()[0].iter().map(|(_, error)| *error).max().unwrap()
        });
    }

    /// Becomes the one member of the group.
    pub fn join(&mut self, group: &str, topic: &str) {
        let mut subscription = Writer::default();
        subscription.i16(0).count(1).text(topic).i32(-1);
        let mut body = Writer::default();
        body.text(group).i32(30_000).i32(30_000).text("").text("consumer").count(1);
        body.text("range").blob(subscription.bytes());
        let answer = self.until(JOIN_GROUP, &body, |reader| {
            reader.i32().unwrap();
            reader.i16().unwrap()
        });
        let mut reader = Reader::new(&answer);
        reader.raw(6).unwrap();
        let generation = reader.i32().unwrap();
        let [_, _, member] = [(); 3].map(|()| reader.text().unwrap());
        let mut body = Writer::default();
        body.text(group).i32(generation).text(&member).count(1).text(&member).blob(b"all");
        self.until(SYNC_GROUP, &body, |reader| {
            reader.i32().unwrap();
            reader.i16().unwrap()
        });
    }

    /// Lets `user` describe all topics (2), groups (3) and the cluster (4), and nothing else.
    pub fn allow_to_describe(&mut self, user: &str) {
        let mut body = Writer::default();
        body.count(3);
        for (kind, name) in [(2, "*"), (3, "*"), (4, "kafka-cluster")] {
            body.i8(kind).text(name).i8(3).text(&format!("User:{user}")).text("*").i8(8).i8(3);
        }
        self.until(CREATE_ACLS, &body, |reader| {
            reader.i32().unwrap();
            reader.list(|reader| Ok((reader.i16()?, reader.text()?))).unwrap()[0].0
        });
    }
}

/// A batch of records that begins at offset 0, as brokers take it.
fn batch(times_ms: &[i64]) -> Vec<u8> {
    let mut records = Vec::new();
    for (place, time) in times_ms.iter().enumerate() {
        let mut record = vec![0];
        signed(&mut record, time - times_ms[0]);
        signed(&mut record, i64::try_from(place).unwrap());
        // No key, a value of one byte, no header.
        record.extend([1, 2, b'x', 0]);
        signed(&mut records, i64::try_from(record.len()).unwrap());
        records.extend(record);
    }
    let count = i32::try_from(times_ms.len()).unwrap();
    let mut rest = Writer::default();
    rest.i16(0).i32(count - 1).i64(times_ms[0]).i64(*times_ms.iter().max().unwrap());
    rest.i64(-1).i16(-1).i32(-1).i32(count).raw(&records);
    let mut whole = Writer::default();
    whole.i64(0).i32(i32::try_from(rest.bytes().len() + 9).unwrap()).i32(-1).i8(2);
    whole.raw(&crc32c(rest.bytes()).to_be_bytes()).raw(rest.bytes());
    whole.bytes().to_vec()
}

/// A signed number in as few bytes as it needs.
fn signed(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |sum: u32, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1))))
}

//! A name server for the names of a world, on loopback over UDP and TCP. It asks nobody.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use super::serve::accept;

/// How long an answer may be kept, in seconds.
const TTL: u32 = 30;

/// What the name server says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Says {
    /// It has these addresses; none of a family is NODATA for that family.
    Addresses(Vec<IpAddr>),
    /// It does not exist.
    NxDomain,
    /// The server failed.
    ServFail,
    /// Nothing at all.
    Nothing,
}

/// Names in lower case without a final dot, and what is said of them. Any other name does not exist.
pub(super) type Zone = BTreeMap<String, Says>;

/// Starts to answer; the tasks end with `tasks`.
pub(super) async fn serve(zone: Zone, tasks: &mut JoinSet<()>) -> io::Result<SocketAddr> {
    let (udp, tcp) = sockets().await?;
    let address = udp.local_addr()?;
    let zone = Arc::new(zone);
    tasks.spawn(accept(tcp, {
        let zone = Arc::clone(&zone);
        move |stream| {
            let zone = Arc::clone(&zone);
            async move {
                // A client that breaks off has its reasons.
                let _ = converse(stream, &zone).await;
            }
        }
    }));
    tasks.spawn(async move {
        let mut datagram = [0; 4096];
        loop {
            // An error here tells of an earlier answer that found nobody.
            if let Ok((length, from)) = udp.recv_from(&mut datagram).await
                && let Some(answer) = answer(&zone, &datagram[..length])
            {
                let _ = udp.send_to(&answer, from).await;
            }
        }
    });
    Ok(address)
}

/// Both sockets on one port, which a few tries find.
async fn sockets() -> io::Result<(UdpSocket, TcpListener)> {
    let mut tries = 0;
    loop {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        match TcpListener::bind(udp.local_addr()?).await {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if tries == 16 => return Err(error),
            Err(_) => tries += 1,
        }
    }
}

/// Queries over TCP, each behind its length (RFC 1035 §4.2.2).
async fn converse(mut stream: TcpStream, zone: &Zone) -> io::Result<()> {
    loop {
        let length = stream.read_u16().await?;
        let mut query = vec![0; length.into()];
        stream.read_exact(&mut query).await?;
        if let Some(answer) = answer(zone, &query) {
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            stream.write_u16(length).await?;
            stream.write_all(&answer).await?;
        }
    }
}

/// The answer to a query; `None` where silence is the answer, or where it is no query.
fn answer(zone: &Zone, query: &[u8]) -> Option<Vec<u8>> {
    let query = Message::from_vec(query).ok()?;
    let question = query.queries.first()?;
    if query.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
    answer.metadata.recursion_desired = query.metadata.recursion_desired;
    answer.metadata.recursion_available = true;
    answer.add_query(question.clone());
    let name = question.name().to_lowercase().to_ascii();
    match zone.get(name.trim_end_matches('.')) {
        None | Some(Says::NxDomain) => answer.metadata.response_code = ResponseCode::NXDomain,
        Some(Says::ServFail) => answer.metadata.response_code = ResponseCode::ServFail,
        Some(Says::Nothing) => return None,
        Some(Says::Addresses(addresses)) => {
            for address in addresses {
                let data = match (address, question.query_type()) {
                    (&IpAddr::V4(v4), RecordType::A) => RData::A(v4.into()),
                    (&IpAddr::V6(v6), RecordType::AAAA) => RData::AAAA(v6.into()),
                    _ => continue,
                };
                answer.add_answer(Record::from_rdata(question.name().clone(), TTL, data));
            }
        }
    }
    answer.to_vec().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::op::Query;
    use hickory_resolver::proto::rr::Name;

    fn query(name: &str, kind: RecordType) -> Vec<u8> {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        query.to_vec().unwrap()
    }

    fn zone() -> Zone {
        let both = ["127.0.0.1", "::1"].map(|it| it.parse().unwrap());
        Zone::from([
            ("both.demo.test".to_owned(), Says::Addresses(both.to_vec())),
            ("none.demo.test".to_owned(), Says::Addresses(Vec::new())),
            ("gone.demo.test".to_owned(), Says::NxDomain),
            ("ill.demo.test".to_owned(), Says::ServFail),
            ("mute.demo.test".to_owned(), Says::Nothing),
        ])
    }

    #[track_caller]
    fn says(name: &str, kind: RecordType, code: ResponseCode, addresses: &[&str]) {
        let answer = answer(&zone(), &query(name, kind)).unwrap();
        let answer = Message::from_vec(&answer).unwrap();
        let found: Vec<String> = answer
            .answers
            .iter()
            .map(|it| it.data.to_string())
            .collect();
        assert_eq!(
            (answer.metadata.response_code, found),
            (code, addresses.iter().map(ToString::to_string).collect()),
            "{name} {kind}"
        );
    }

    #[test]
    fn a_name_gets_what_is_said_of_it() {
        use RecordType::{A, AAAA, MX};
        says("both.demo.test.", A, ResponseCode::NoError, &["127.0.0.1"]);
        says("BOTH.Demo.test.", AAAA, ResponseCode::NoError, &["::1"]);
        says("both.demo.test.", MX, ResponseCode::NoError, &[]);
        says("none.demo.test.", A, ResponseCode::NoError, &[]);
        says("gone.demo.test.", A, ResponseCode::NXDomain, &[]);
        says("unheard.of.test.", A, ResponseCode::NXDomain, &[]);
        says("ill.demo.test.", A, ResponseCode::ServFail, &[]);
        assert_eq!(answer(&zone(), &query("mute.demo.test.", A)), None);
        assert_eq!(answer(&zone(), b"no message"), None);
    }

    #[tokio::test]
    async fn the_same_is_said_over_udp_and_tcp() {
        let mut tasks = JoinSet::new();
        let address = serve(zone(), &mut tasks).await.unwrap();
        let query = query("both.demo.test.", RecordType::A);

        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        udp.send_to(&query, address).await.unwrap();
        let mut datagram = [0; 512];
        let length = udp.recv(&mut datagram).await.unwrap();

        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_u16(u16::try_from(query.len()).unwrap())
            .await
            .unwrap();
        tcp.write_all(&query).await.unwrap();
        let mut answer = vec![0; tcp.read_u16().await.unwrap().into()];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, datagram[..length]);
    }
}

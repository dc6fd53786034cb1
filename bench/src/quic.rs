//! QUIC as `quinn` has it, both ends on threads of this process.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;

use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::runtime::Builder;

use crate::{BLOCK, Cost, LOCAL, OCTETS, cost, thread_ns};

type Done = Result<(), Box<dyn Error + Send + Sync>>;

/// Moves [`OCTETS`] on one stream.
pub fn quic() -> Cost {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let (told, address) = mpsc::channel();
    let theirs = certificate.clone();
    let reads = thread::spawn(move || {
        on_its_own(receive(theirs, key, &told))?;
        Ok::<_, Box<dyn Error + Send + Sync>>(thread_ns())
    });
    let to = address.recv().expect("a port");
    let sends = cost(|| on_its_own(send(certificate, to)).expect("somebody there"));
    [sends, reads.join().expect("no panic").expect("all came")]
}

fn on_its_own(work: impl Future<Output = Done>) -> Done {
    Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn receive(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    told: &mpsc::Sender<SocketAddr>,
) -> Done {
    let config = ServerConfig::with_single_cert(vec![certificate], key)?;
    let endpoint = Endpoint::server(config, LOCAL.into())?;
    told.send(endpoint.local_addr()?)?;
    let connection = endpoint.accept().await.ok_or("no call")?.await?;
    let mut stream = connection.accept_uni().await?;
    let (mut block, mut all) = (vec![0; BLOCK], 0);
    while let Some(n) = stream.read(&mut block).await? {
        all += n;
    }
    assert_eq!(all, OCTETS);
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn send(certificate: CertificateDer<'static>, to: SocketAddr) -> Done {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut endpoint = Endpoint::client(LOCAL.into())?;
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = endpoint.connect(to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let block = vec![7; BLOCK];
    for _ in 0..OCTETS / BLOCK {
        stream.write_all(&block).await?;
    }
    stream.finish()?;
    // until the other end has all of it
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(())
}

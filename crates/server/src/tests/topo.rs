//! The page that shows a server as NCCL sees it.

use axum::body::Body;
use serde_json::json;

use super::{Stand, tempdir};

/// Two GPUs and a port, with a name that would be markup.
const SERVER: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1"/>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="&lt;b>" dev="0" speed="200000" port="1" guid="0x1" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"#;

async fn look(stand: &Stand, ask: serde_json::Value) -> (u16, String) {
    let request = stand.request("POST", "/topo/look").body(Body::from(ask.to_string())).unwrap();
    let (status, headers, text) = stand.send(request).await;
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("style-src 'self'") && !policy.contains("unsafe"), "{policy}");
    (status.as_u16(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_drawn_with_its_matrix_and_findings_and_nothing_of_it_is_kept() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let name = "<img src=x onerror=alert(1)>";
    let (status, text) = look(&stand, json!({ "text": SERVER, "name": name })).await;
    assert_eq!(status, 200, "{text}");
    for wanted in ["self-link", "selvedge topo lint --fix", "<svg", "GPU0", "NET0", "PIX"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert!(!text.contains("class=\"way\""), "{text}");
    let ask = json!({ "text": SERVER, "name": "a.xml", "from": "gpu0", "to": "NET0" });
    let (status, drawn) = look(&stand, ask).await;
    assert!(status == 200 && drawn.contains("class=\"way\""), "{drawn}");
    let ask = json!({ "text": SERVER, "name": "a.xml", "from": "GPU0", "to": "NET7" });
    let (status, refused) = look(&stand, ask).await;
    // A way that is not there takes nothing else away.
    let why = "no way is drawn: there is no NET7 here; there are GPU0, GPU1, NET0";
    for wanted in [why, "self-link", "<svg", "PIX"] {
        assert!(status == 200 && refused.contains(wanted), "{wanted} in {refused}");
    }
    // What the policy would not let in, and what a file must not bring in.
    for unwanted in ["style=", "<style", "<script", "<img", "<b>"] {
        assert!(!text.contains(unwanted), "{unwanted} in {text}");
    }
    stand.down();
    for file in walk(dir.path()) {
        let kept = std::fs::read(&file).unwrap();
        let kept = String::from_utf8_lossy(&kept);
        assert!(!kept.contains("onerror=alert") && !kept.contains("AuthenticAMD"), "{file:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rank_s_view_leaves_out_is_said_and_another_rank_shows_it() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let ask = json!({ "text": APART, "from": "GPU0", "to": "GPU1" });
    let (status, text) = look(&stand, ask).await;
    assert_eq!(status, 200, "{text}");
    for wanted in [
        "NCCL leaves GPU1 out of rank 0's view",
        "the field rank shows it",
        "no way is drawn: NCCL leaves GPU1 out of rank 0's view",
        "rank 0's view, which leaves out GPU1",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    let (status, text) = look(&stand, json!({ "text": APART, "rank": 1 })).await;
    assert!(status == 200 && text.contains("which leaves out GPU0"), "{text}");
    stand.down();
}

/// Two GPUs whose ports are faster than the way between them.
const APART: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="a" dev="0" speed="200000" port="1" guid="0x1" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:11:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:12:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1"/>
      </pci>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="b" dev="1" speed="200000" port="1" guid="0x2" maxconn="9" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"#;

/// One GPU and one port, as a log tells them.
const LOG: &str = "\
h:1:2 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===
h:1:2 [0] NCCL INFO CPU/0-0 (1/1/2)
h:1:2 [0] NCCL INFO + PCI[24.0] - GPU/0-7000 (0)
h:1:2 [0] NCCL INFO + PCI[24.0] - NIC/0-9000
h:1:2 [0] NCCL INFO               + NET[25.0] - NET/0-0 (0/1/1/25.000000)
h:1:2 [0] NCCL INFO ==========================================
h:1:2 [0] NCCL INFO GPU/0-7000 :GPU/0-7000 (0/5000.0/LOC) NET/0-0 (3/24.0/PHB)
h:1:2 [0] NCCL INFO NET/0-0 :GPU/0-7000 (3/24.0/PHB)
";

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_drawn_with_its_matrix() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let (status, text) = look(&stand, json!({ "text": LOG, "name": "<b>run" })).await;
    assert_eq!(status, 200, "{text}");
    for wanted in ["<svg", "from a log of NCCL", "GPU0", "NET0", "PHB"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    for unwanted in ["style=", "<style", "<b>"] {
        assert!(!text.contains(unwanted), "{unwanted} in {text}");
    }
    let (status, text) =
        look(&stand, json!({ "text": "h:1:2 [0] NCCL INFO Bootstrap : Using eth0" })).await;
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET"), "{text}");
    stand.down();
}

/// All files below `dir`.
fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
    let (dirs, mut files): (Vec<_>, Vec<_>) = entries.partition(|it| it.is_dir());
    files.retain(|it| it.is_file());
    files.extend(dirs.iter().flat_map(|it| walk(it)));
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at_is_said_in_words() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let many = "<pci busid=\"1\" class=\"2\"/>\n".repeat(700);
    let many = format!("<system version=\"1\">\n<cpu>\n{many}</cpu>\n</system>\n");
    for (ask, wanted) in [
        (json!({ "text": "<system version=\"1\">\n<cpu" }), "2:5: found"),
        (json!({ "text": "hello" }), "neither a topology file nor a log"),
        (json!({ "text": SERVER, "nccl": "1.0" }), "NCCL 1.0 is not reproduced"),
        (json!({ "text": SERVER, "nodes": 0 }), "a job has 1 to 1024"),
        (json!({ "text": many }), "700 devices"),
        (json!({ "text": "<topology version=\"2.0\"/>" }), "shows no GPU and no network card"),
    ] {
        let (status, text) = look(&stand, ask).await;
        assert_eq!(status, 422, "{text}");
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    // A file that NCCL refuses is still told what is wrong with it.
    let refused = SERVER.replace("version=\"1\"", "version=\"2\"");
    let (status, text) = look(&stand, json!({ "text": refused })).await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("does not take it") && text.contains("version"), "{text}");
    stand.down();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_brings_its_style_and_script_itself() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    for (path, kind, wanted) in [
        ("/topo", "text/html", "id=\"text\""),
        ("/topo.css", "text/css", ".picture{text{"),
        ("/topo.js", "text/javascript", "/topo/look"),
    ] {
        let (status, headers, text) =
            stand.send(stand.request("GET", path).body(Body::empty()).unwrap()).await;
        assert_eq!(status, 200, "{path}");
        assert!(headers["content-type"].to_str().unwrap().starts_with(kind), "{path}");
        assert!(text.contains(wanted), "{path}: {text}");
    }
    stand.down();
}

// SPDX-License-Identifier: GPL-2.0-only
// TCP over a line of nodes, each in reach of its two neighbours only: at -50 dBm, and nothing at all from anybody farther away.
#include "ip.h"

#include "ns3/applications-module.h"

using namespace ns3;

namespace
{

constexpr double kTxPowerDbm = 16.0206;
constexpr double kFlowsFromS = 0.1;

/// Neighbours at -50 dBm, everybody else out of reach.
Ptr<PropagationLossModel>
NeighboursOnly(const NodeContainer& nodes)
{
    auto loss = CreateObject<MatrixPropagationLossModel>();
    loss->SetDefaultLoss(500);
    for (uint32_t i = 0; i + 1 < nodes.GetN(); i++)
    {
        auto place = [&](uint32_t n) { return nodes.Get(n)->GetObject<MobilityModel>(); };
        loss->SetLoss(place(i), place(i + 1), kTxPowerDbm + 50);
    }
    return loss;
}

/// The TCP of the comparison, which never gives a connection up. `newreno` is NewReno with an acknowledgement for each segment, a
/// first window of three, limited transmit and no options but SACK; `nosack` has not even that. Otherwise Linux's Reno with
/// timestamps, SACK and delayed acknowledgements.
void
ConfigureTcp(const std::string& tcp)
{
    const bool newreno = tcp != "linux";
    const TypeId type = newreno ? TcpNewReno::GetTypeId() : TcpLinuxReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(type));
    const uint32_t window = newreno ? 65535 : 131072;
    for (auto [name, value] : std::vector<std::pair<std::string, uint32_t>>{
             {"SegmentSize", 1448},
             {"SndBufSize", window},
             {"RcvBufSize", window},
             {"InitialCwnd", newreno ? 3 : 10},
             {"DelAckCount", newreno ? 1 : 2},
             {"DataRetries", 1000},
             {"ConnCount", 1000},
         })
    {
        Config::SetDefault("ns3::TcpSocket::" + name, UintegerValue(value));
    }
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(tcp != "nosack"));
    for (const std::string option : {"Timestamp", "WindowScaling"})
    {
        Config::SetDefault("ns3::TcpSocketBase::" + option, BooleanValue(!newreno));
    }
}

/// Host routes along the line, in place of the route to the subnet that all of them share.
void
RouteAlong(const NetDeviceContainer& devices, const Ipv4InterfaceContainer& at)
{
    for (uint32_t i = 0; i < devices.GetN(); i++)
    {
        auto table = Ipv4StaticRoutingHelper().GetStaticRouting(at.Get(i).first);
        for (uint32_t route = table->GetNRoutes(); route-- > 0;)
        {
            if (table->GetRoute(route).GetInterface() == 1)
            {
                table->RemoveRoute(route);
            }
        }
        for (uint32_t to = 0; to < devices.GetN(); to++)
        {
            if (to != i)
            {
                table->AddHostRouteTo(at.GetAddress(to), at.GetAddress(to > i ? i + 1 : i - 1), 1);
            }
        }
        if (i > 0)
        {
            peer::Introduce(devices, at, i, i - 1);
            peer::Introduce(devices, at, i - 1, i);
        }
    }
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t hops = 2;
    uint32_t mbps = 6;
    uint32_t flows = 1;
    uint32_t octets = 2'000'000;
    std::string tcp = "newreno";
    uint32_t queue = 51;
    peer::Experiment experiment("chain", 600);
    experiment.Option("hops", "hops from the first node to the last", hops);
    experiment.Option("rate", "Mb/s of data and ACK frames", mbps);
    experiment.Option("flows", "parallel TCP connections", flows);
    experiment.Option("octets", "octets per connection", octets);
    experiment.Option("tcp", "newreno, nosack or linux", tcp);
    experiment.Option("queue", "frames that a node holds at most", queue);
    experiment.Parse(argc, argv);

    if (tcp != "newreno" && tcp != "nosack" && tcp != "linux")
    {
        std::cerr << "chain: --tcp is newreno, nosack or linux\n";
        return 2;
    }
    ConfigureTcp(tcp);
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue(std::to_string(queue) + "p"));
    peer::Radio radio;
    radio.dataMbps = mbps;
    radio.controlMbps = mbps;
    radio.reception = "threshold";
    radio.lifetimeS = 1000;
    auto devices = peer::AdHoc(radio, peer::Rows(hops + 1, hops + 1, 30), NeighboursOnly);
    uint64_t sent = 0;
    for (uint32_t i = 0; i <= hops; i++)
    {
        peer::CountTransmissions(peer::Device(devices, i), &sent);
    }
    auto at = peer::InstallIp(devices);
    RouteAlong(devices, at);

    auto first = devices.Get(0)->GetNode();
    auto last = devices.Get(hops)->GetNode();
    ApplicationContainer sinks;
    for (uint32_t flow = 0; flow < flows; flow++)
    {
        const uint16_t port = 5000 + flow;
        const std::string factory = "ns3::TcpSocketFactory";
        sinks.Add(PacketSinkHelper(factory, InetSocketAddress(Ipv4Address::GetAny(), port)).Install(last));
        BulkSendHelper source(factory, InetSocketAddress(at.GetAddress(hops), port));
        source.SetAttribute("MaxBytes", UintegerValue(octets));
        source.SetAttribute("SendSize", UintegerValue(1448));
        const uint64_t phaseUs = peer::Mix3(experiment.Run(), flow, 4) % 10'000;
        source.Install(first).Start(Seconds(kFlowsFromS) + MicroSeconds(phaseUs));
    }
    // done when the last octet of the last connection is in
    const uint64_t wanted = uint64_t(octets) * flows;
    uint64_t delivered = 0;
    for (uint32_t flow = 0; flow < flows; flow++)
    {
        Callback<void, Ptr<const Packet>, const Address&> received(
            [&](Ptr<const Packet> packet, const Address&) {
                delivered += packet->GetSize();
                if (delivered == wanted)
                {
                    Simulator::Stop();
                }
            });
        sinks.Get(flow)->TraceConnectWithoutContext("Rx", received);
    }
    experiment.Simulate();

    const double tookS = Simulator::Now().GetSeconds() - kFlowsFromS;
    peer::Json result;
    result.Add("goodput_mbps", delivered * 8 / tookS / 1e6);
    result.Add("frames_on_air", sent).Add("complete", delivered == wanted).Add("took_s", tookS);
    experiment.Report(result);
}

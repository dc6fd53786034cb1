// SPDX-License-Identifier: GPL-2.0-only
// A square grid of nodes 30 m apart. Each sends 200 octets in UDP/IPv4, an MSDU of 236 octets, to one of its up to four
// neighbours every 20 ms, at 6 Mb/s.
#include "ip.h"

using namespace ns3;

namespace
{

constexpr uint32_t kUdpOctets = 200;
constexpr uint16_t kUdpPort = 9;
constexpr uint32_t kPeriodUs = 20'000;

/// Nodes west, east, north and south of node `i`, in this order, as far as they exist.
std::vector<uint32_t>
Neighbours(uint32_t i, uint32_t nodes, uint32_t columns)
{
    std::vector<uint32_t> found;
    if (i % columns > 0)
    {
        found.push_back(i - 1);
    }
    if (i % columns + 1 < columns && i + 1 < nodes)
    {
        found.push_back(i + 1);
    }
    if (i >= columns)
    {
        found.push_back(i - columns);
    }
    if (i + columns < nodes)
    {
        found.push_back(i + columns);
    }
    return found;
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t nodes = 100;
    peer::Radio radio;
    peer::Experiment experiment("grid", 2);
    experiment.Option("nodes", "nodes in the grid, 2 or more", nodes);
    experiment.Option("reception", "table or threshold", radio.reception);
    experiment.Parse(argc, argv);

    const auto columns = static_cast<uint32_t>(std::ceil(std::sqrt(nodes)));
    auto devices = peer::AdHoc(radio, peer::Rows(nodes, columns, 30), peer::LogDistance);

    auto at = peer::InstallIp(devices);

    uint64_t submitted = 0;
    uint64_t delivered = 0;
    uint64_t sent = 0;
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < nodes; i++)
    {
        auto device = peer::Device(devices, i);
        peer::CountTransmissions(device, &sent);
        device->GetMac()->TraceConnectWithoutContext(
            "DroppedMpdu",
            MakeBoundCallback(&peer::Count<WifiMacDropReason, Ptr<const WifiMpdu>>, &dropped));
        auto socket = Socket::CreateSocket(device->GetNode(), UdpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), kUdpPort));
        socket->SetRecvCallback(Callback<void, Ptr<Socket>>([&delivered](Ptr<Socket> received) {
            while (received->Recv())
            {
                delivered++;
            }
        }));
        const auto neighbours = Neighbours(i, nodes, columns);
        const uint32_t to = neighbours.at(peer::Mix3(experiment.Run(), i, 2) % neighbours.size());
        peer::Introduce(devices, at, i, to);
        const InetSocketAddress address(at.GetAddress(to), kUdpPort);
        const uint64_t phaseUs = peer::Mix3(experiment.Run(), i, 3) % kPeriodUs;
        peer::Every(MicroSeconds(phaseUs), MicroSeconds(kPeriodUs), [&submitted, socket, address] {
            submitted++;
            socket->SendTo(Create<Packet>(kUdpOctets), 0, address);
        });
    }
    experiment.Simulate();

    peer::Json result;
    result.Add("delivered_ratio", double(delivered) / submitted);
    result.Add("frames_on_air", sent).Add("submitted", submitted).Add("dropped", dropped);
    experiment.Report(result);
}

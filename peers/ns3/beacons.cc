// SPDX-License-Identifier: GPL-2.0-only
// A square of nodes 3 m apart, all in reach of each other. Each broadcasts a 100-octet MSDU every 100 ms at 6 Mb/s. ns-3's ad hoc
// MAC sends no beacons: this is the load of beacons, offered from above.
#include "peer.h"

using namespace ns3;

namespace
{

constexpr uint32_t kMsduOctets = 100;
constexpr uint32_t kPeriodUs = 100'000;

} // namespace

int
main(int argc, char** argv)
{
    uint32_t nodes = 100;
    peer::Radio radio;
    peer::Experiment experiment("beacons", 20);
    experiment.Option("nodes", "nodes in the square, 2 or more", nodes);
    experiment.Option("reception", "table or threshold", radio.reception);
    experiment.Parse(argc, argv);

    const auto columns = static_cast<uint32_t>(std::ceil(std::sqrt(nodes)));
    auto devices = peer::AdHoc(radio, peer::Rows(nodes, columns, 3), peer::LogDistance);

    uint64_t delivered = 0;
    uint64_t sent = 0;
    for (uint32_t i = 0; i < nodes; i++)
    {
        auto device = peer::Device(devices, i);
        device->SetReceiveCallback(
            [&](Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&) { return ++delivered > 0; });
        peer::CountTransmissions(device, &sent);
        const uint64_t phaseUs = peer::Mix3(experiment.Run(), i, 5) % kPeriodUs;
        peer::Every(MicroSeconds(phaseUs), MicroSeconds(kPeriodUs), [device] {
            peer::Submit(device, device->GetBroadcast(), kMsduOctets);
        });
    }
    experiment.Simulate();

    peer::Json result;
    result.Add("delivered_ratio", delivered / (double(sent) * (nodes - 1)));
    result.Add("frames_on_air", sent);
    experiment.Report(result);
}

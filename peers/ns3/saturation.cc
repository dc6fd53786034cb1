// SPDX-License-Identifier: GPL-2.0-only
// Saturated 802.11a stations on a circle of 1 m around one receiver; every pair hears every other at -50 dBm.
#include "peer.h"

using namespace ns3;

namespace
{

constexpr uint32_t kMsduOctets = 1500;

/// A station whose queue never runs empty: four MSDUs at first, one more for each that leaves.
struct Station
{
    Ptr<NetDevice> device;
    Address receiver;
    uint64_t acked{0};
    uint64_t dropped{0};

    void Fill()
    {
        for (int i = 0; i < 4; i++)
        {
            peer::Submit(device, receiver, kMsduOctets);
        }
    }

    void Acked(Ptr<const WifiMpdu>)
    {
        acked++;
        peer::Submit(device, receiver, kMsduOctets);
    }

    void Dropped(WifiMacDropReason, Ptr<const WifiMpdu>)
    {
        dropped++;
        peer::Submit(device, receiver, kMsduOctets);
    }
};

} // namespace

int
main(int argc, char** argv)
{
    uint32_t nodes = 10;
    peer::Experiment experiment("saturation", 10);
    experiment.Option("nodes", "saturated stations, the receiver not counted", nodes);
    experiment.Parse(argc, argv);

    std::vector<Vector> positions{Vector(0, 0, 0)};
    for (uint32_t i = 0; i < nodes; i++)
    {
        const double angle = 2 * M_PI * i / nodes;
        positions.emplace_back(std::cos(angle), std::sin(angle), 0);
    }
    peer::Radio radio;
    radio.dataMbps = 54;
    radio.controlMbps = 24;
    radio.lifetimeS = 1e5;
    auto devices = peer::AdHoc(radio, positions, peer::EveryPairAt(-50));

    uint64_t delivered = 0;
    uint64_t attempts = 0;
    uint64_t acks = 0;
    peer::CountTransmissions(peer::Device(devices, 0), &acks);
    devices.Get(0)->SetReceiveCallback(
        [&](Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&) { return ++delivered > 0; });
    std::vector<Station> stations(nodes);
    for (uint32_t i = 0; i < nodes; i++)
    {
        auto device = peer::Device(devices, i + 1);
        Station* station = &stations[i];
        station->device = device;
        station->receiver = devices.Get(0)->GetAddress();
        auto mac = device->GetMac();
        mac->TraceConnectWithoutContext("AckedMpdu", MakeCallback(&Station::Acked, station));
        mac->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&Station::Dropped, station));
        peer::CountTransmissions(device, &attempts);
        const uint64_t phaseNs = peer::Mix3(experiment.Run(), i, 1) % 10'000'000;
        Simulator::Schedule(NanoSeconds(phaseNs), &Station::Fill, station);
    }
    experiment.Simulate();

    double acked = 0;
    double dropped = 0;
    for (const auto& station : stations)
    {
        acked += station.acked;
        dropped += station.dropped;
    }
    peer::Json result;
    result.Add("throughput_mbps", delivered * kMsduOctets * 8 / experiment.Seconds() / 1e6);
    result.Add("collision_probability", attempts > 0 ? 1 - acked / attempts : 0);
    result.Add("frames_on_air", attempts + acks).Add("acked", acked).Add("dropped", dropped);
    experiment.Report(result);
}

// SPDX-License-Identifier: GPL-2.0-only
// Two nodes 1 m apart: one unicast frame every 51.2 ms, one attempt each, and the four intervals of every exchange.
#include "peer.h"

#include <algorithm>

using namespace ns3;

namespace
{

/// Shortest, mean and longest of a series of intervals.
class Interval
{
  public:
    void Add(Time interval)
    {
        const double us = interval.GetNanoSeconds() / 1e3;
        m_least = m_count > 0 ? std::min(m_least, us) : us;
        m_most = m_count > 0 ? std::max(m_most, us) : us;
        m_sum += us;
        m_count++;
    }

    /// Nothing is reported of an interval that never came.
    void Report(peer::Json& result, const std::string& name) const
    {
        if (m_count > 0)
        {
            result.Add(name + "_us", m_sum / m_count);
            result.Add(name + "_least_us", m_least).Add(name + "_most_us", m_most);
        }
    }

  private:
    uint64_t m_count{0};
    double m_sum{0};
    double m_least{0};
    double m_most{0};
};

/// The four moments of an exchange, and what they have in common.
struct Exchange
{
    Time submitted;
    Time dataStart;
    Time dataEnd;
    Time ackStart;
    Interval access;
    Interval data;
    Interval gap;
    Interval ack;
    uint64_t sent{0};

    void DataBegin(Ptr<const Packet>, double)
    {
        sent++;
        dataStart = Simulator::Now();
        access.Add(dataStart - submitted);
    }

    void DataEnd(Ptr<const Packet>)
    {
        dataEnd = Simulator::Now();
        data.Add(dataEnd - dataStart);
    }

    void AckBegin(Ptr<const Packet>, double)
    {
        sent++;
        ackStart = Simulator::Now();
        gap.Add(ackStart - dataEnd);
    }

    void AckEnd(Ptr<const Packet>)
    {
        ack.Add(Simulator::Now() - ackStart);
    }
};

} // namespace

int
main(int argc, char** argv)
{
    uint32_t msdu = 50;
    bool lossy = false;
    peer::Experiment experiment("oneshot", 512);
    experiment.Option("msdu", "octets per MSDU, LLC/SNAP included", msdu);
    experiment.Option("lossy", "the receiver is out of reach", lossy);
    experiment.Parse(argc, argv);

    peer::Radio radio;
    radio.dataMbps = 54;
    radio.controlMbps = 24;
    radio.attempts = 1;
    auto devices = peer::AdHoc(radio, peer::Rows(2, 2, 1), peer::EveryPairAt(lossy ? -200 : -50));
    auto sender = peer::Device(devices, 0);
    auto receiver = peer::Device(devices, 1);

    Exchange exchange;
    uint64_t submitted = 0;
    uint64_t delivered = 0;
    uint64_t acked = 0;
    receiver->SetReceiveCallback(
        [&](Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&) { return ++delivered > 0; });
    sender->GetMac()->TraceConnectWithoutContext(
        "AckedMpdu",
        MakeBoundCallback(&peer::Count<Ptr<const WifiMpdu>>, &acked));
    auto watch = [&](Ptr<WifiNetDevice> device, auto begin, auto end) {
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(begin, &exchange));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(end, &exchange));
    };
    watch(sender, &Exchange::DataBegin, &Exchange::DataEnd);
    watch(receiver, &Exchange::AckBegin, &Exchange::AckEnd);

    peer::Every(MilliSeconds(20), MicroSeconds(51'200), [&] {
        submitted++;
        exchange.submitted = Simulator::Now();
        peer::Submit(sender, receiver->GetAddress(), msdu);
    });
    experiment.Simulate();

    peer::Json result;
    result.Add("delivered_ratio", double(delivered) / submitted);
    result.Add("frames_on_air", exchange.sent).Add("submitted", submitted).Add("acked", acked);
    exchange.access.Report(result, "access");
    exchange.data.Report(result, "data");
    exchange.gap.Report(result, "data_end_to_ack_start");
    exchange.ack.Report(result, "ack");
    experiment.Report(result);
}

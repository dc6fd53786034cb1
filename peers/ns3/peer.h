// SPDX-License-Identifier: GPL-2.0-only
// What the scenario programs share: options, the traffic hash, an 802.11a network, measuring, and the one
// line of JSON that each of them prints.
#pragma once

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <linux/perf_event.h>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace peer
{

/// EtherType of the test traffic (IEEE 802 local experimental 1).
constexpr uint16_t kEtherType = 0x88b5;

/// Octets of LLC/SNAP that ns-3 puts before every packet. An MSDU of n octets is a packet of n - 8.
constexpr uint32_t kLlcSnap = 8;

/// The finalizer of splitmix64 with its increment.
inline uint64_t
SplitMix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// Phase and neighbour of a node come from this hash and not from ns-3's generators, so that another simulator
/// offers exactly the same traffic.
inline uint64_t
Mix3(uint64_t run, uint64_t node, uint64_t salt)
{
    return SplitMix(SplitMix(SplitMix(run) ^ node) ^ salt);
}

/// A JSON object, written field by field. Keys and strings hold no character that needs an escape.
class Json
{
  public:
    Json& Add(const std::string& key, double value)
    {
        std::ostringstream s;
        s << std::setprecision(12) << value;
        return Raw(key, s.str());
    }

    Json& Add(const std::string& key, const std::string& value)
    {
        return Raw(key, '"' + value + '"');
    }

    Json& Add(const std::string& key, const Json& value)
    {
        return Raw(key, value.Text());
    }

    std::string Text() const
    {
        return "{" + m_fields + "}";
    }

  private:
    Json& Raw(const std::string& key, const std::string& text)
    {
        m_fields += (m_fields.empty() ? "\"" : ",\"") + key + "\":" + text;
        return *this;
    }

    std::string m_fields;
};

/// CPU seconds and peak resident set of this process so far.
struct Usage
{
    double cpuS;
    double maxRssKb;

    static Usage Now()
    {
        rusage u;
        getrusage(RUSAGE_SELF, &u);
        auto seconds = [](const timeval& t) { return t.tv_sec + 1e-6 * t.tv_usec; };
        return {seconds(u.ru_utime) + seconds(u.ru_stime), double(u.ru_maxrss)};
    }
};

/// User-mode instructions of this process between construction and Read, or -1 on a machine without counters.
class InstructionCounter
{
  public:
    InstructionCounter()
    {
        perf_event_attr attr{};
        attr.type = PERF_TYPE_HARDWARE;
        attr.size = sizeof(attr);
        attr.config = PERF_COUNT_HW_INSTRUCTIONS;
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        m_fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
    }

    ~InstructionCounter()
    {
        if (m_fd >= 0)
        {
            close(m_fd);
        }
    }

    InstructionCounter(const InstructionCounter&) = delete;
    InstructionCounter& operator=(const InstructionCounter&) = delete;

    double Read() const
    {
        uint64_t count = 0;
        const bool ok = m_fd >= 0 && read(m_fd, &count, sizeof(count)) == sizeof(count);
        return ok ? static_cast<double>(count) : -1;
    }

  private:
    int m_fd;
};

/// One run of one scenario: its options, the simulation, the line of JSON.
class Experiment
{
  public:
    /// `seconds` is the default of --seconds.
    Experiment(std::string scenario, double seconds)
        : m_scenario(std::move(scenario)),
          m_seconds(seconds)
    {
        Option("run", "phases and random streams, 1 and up", m_run);
        Option("stream", "random streams only, when they shall differ from --run", m_stream);
        m_cmd.AddValue("seconds", "simulated seconds", m_seconds);
    }

    /// Offers --name=value; the value is also reported under "params".
    template <typename T>
    void Option(const std::string& name, const std::string& help, T& value)
    {
        m_cmd.AddValue(name, help, value);
        m_params.push_back([name, &value](Json& json) { json.Add(name, value); });
    }

    /// Reads the command line. Call once, before anything of ns-3 is built.
    void Parse(int argc, char** argv)
    {
        m_cmd.Parse(argc, argv);
        ns3::RngSeedManager::SetSeed(1);
        ns3::RngSeedManager::SetRun(m_stream > 0 ? m_stream : m_run);
    }

    uint32_t Run() const
    {
        return m_run;
    }

    double Seconds() const
    {
        return m_seconds;
    }

    /// Simulates to the end and measures nothing but that.
    void Simulate()
    {
        ns3::Simulator::Stop(ns3::Seconds(m_seconds));
        const auto wall = std::chrono::steady_clock::now();
        const double cpu = Usage::Now().cpuS;
        const InstructionCounter instructions;
        ns3::Simulator::Run();
        m_instructions = instructions.Read();
        m_cpuS = Usage::Now().cpuS - cpu;
        m_wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
        m_simS = ns3::Simulator::Now().GetSeconds();
    }

    /// Prints the line and tears ns-3 down.
    void Report(const Json& result) const
    {
        Json params;
        for (const auto& add : m_params)
        {
            add(params);
        }
        Json line;
        line.Add("peer", std::string("ns-3 " NS3_VERSION)).Add("scenario", m_scenario);
        line.Add("params", params).Add("sim_s", m_simS);
        line.Add("cpu_s", m_cpuS).Add("wall_s", m_wallS).Add("instructions", m_instructions);
        line.Add("events", static_cast<double>(ns3::Simulator::GetEventCount()));
        line.Add("max_rss_kb", Usage::Now().maxRssKb).Add("result", result);
        std::cout << line.Text() << std::endl;
        ns3::Simulator::Destroy();
    }

  private:
    std::string m_scenario;
    double m_seconds;
    uint32_t m_run{1};
    uint32_t m_stream{0};
    ns3::CommandLine m_cmd;
    std::vector<std::function<void(Json&)>> m_params;
    double m_simS{0};
    double m_cpuS{0};
    double m_wallS{0};
    double m_instructions{-1};
};

/// A frame, or a part of it, is received if its SINR is 4 dB or more, and lost otherwise. ns-3's own tables let most short
/// 6 Mb/s frames survive an overlap of equal power.
class ThresholdReception : public ns3::ErrorRateModel
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId id = ns3::TypeId("peer::ThresholdReception")
                                    .SetParent<ns3::ErrorRateModel>()
                                    .AddConstructor<ThresholdReception>();
        return id;
    }

  private:
    double DoGetChunkSuccessRate(ns3::WifiMode,
                                 const ns3::WifiTxVector&,
                                 double snr,
                                 uint64_t,
                                 uint8_t,
                                 ns3::WifiPpduField,
                                 uint16_t) const override
    {
        return 10 * std::log10(snr) >= 4 ? 1 : 0;
    }
};

NS_OBJECT_ENSURE_REGISTERED(ThresholdReception);

/// What all nodes of an 802.11a ad hoc network have in common.
struct Radio
{
    uint32_t dataMbps{6};
    uint32_t controlMbps{6};
    /// Attempts per frame, retries included.
    uint32_t attempts{7};
    /// "table": ns-3's default tables of packet error rates; "threshold": ThresholdReception.
    std::string reception{"table"};
    /// Packets wait in the MAC queue this long at most.
    double lifetimeS{0.5};
};

/// Places one node with one ad hoc device at each position. `loss` may need the nodes' mobility models, hence a function.
inline ns3::NetDeviceContainer
AdHoc(const Radio& radio,
      const std::vector<ns3::Vector>& positions,
      const std::function<ns3::Ptr<ns3::PropagationLossModel>(const ns3::NodeContainer&)>& loss)
{
    using namespace ns3;
    // 3.37 has the limit at the station manager, for two frame sizes; 3.44 moved it to the MAC
    if (!Config::SetDefaultFailSafe("ns3::WifiMac::FrameRetryLimit", UintegerValue(radio.attempts)))
    {
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(radio.attempts));
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(radio.attempts));
    }
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(radio.lifetimeS)));

    NodeContainer nodes;
    nodes.Create(positions.size());
    for (size_t i = 0; i < positions.size(); i++)
    {
        auto place = CreateObject<ConstantPositionMobilityModel>();
        place->SetPosition(positions[i]);
        nodes.Get(i)->AggregateObject(place);
    }

    auto channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    channel->SetPropagationLossModel(loss(nodes));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    if (radio.reception == "threshold")
    {
        phy.SetErrorRateModel(ThresholdReception::GetTypeId().GetName());
    }
    auto mode = [](uint32_t mbps) { return StringValue("OfdmRate" + std::to_string(mbps) + "Mbps"); };
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 mode(radio.dataMbps),
                                 "ControlMode",
                                 mode(radio.controlMbps));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    wifi.AssignStreams(devices, 1000);
    return devices;
}

/// Every pair hears every other at `dbm`.
inline std::function<ns3::Ptr<ns3::PropagationLossModel>(const ns3::NodeContainer&)>
EveryPairAt(double dbm)
{
    return [dbm](const ns3::NodeContainer&) {
        auto loss = ns3::CreateObject<ns3::FixedRssLossModel>();
        loss->SetRss(dbm);
        return loss;
    };
}

/// ns-3's default: 46.6777 dB at 1 m, exponent 3.
inline ns3::Ptr<ns3::PropagationLossModel>
LogDistance(const ns3::NodeContainer&)
{
    return ns3::CreateObject<ns3::LogDistancePropagationLossModel>();
}

/// `nodes` positions in rows of `columns`, `spacing` metres apart.
inline std::vector<ns3::Vector>
Rows(uint32_t nodes, uint32_t columns, double spacing)
{
    std::vector<ns3::Vector> at;
    for (uint32_t i = 0; i < nodes; i++)
    {
        at.emplace_back(i % columns * spacing, i / columns * spacing, 0);
    }
    return at;
}

inline ns3::Ptr<ns3::WifiNetDevice>
Device(const ns3::NetDeviceContainer& devices, uint32_t i)
{
    return ns3::DynamicCast<ns3::WifiNetDevice>(devices.Get(i));
}

/// Hands an MSDU of `octets` to the MAC of `from`, for `to`.
inline void
Submit(ns3::Ptr<ns3::NetDevice> from, ns3::Address to, uint32_t octets)
{
    from->Send(ns3::Create<ns3::Packet>(octets - kLlcSnap), to, kEtherType);
}

/// Calls `action` after `wait`, and then again after every `period`, for ever.
inline void
Every(ns3::Time wait, ns3::Time period, const std::function<void()>& action)
{
    ns3::Simulator::Schedule(wait, [=] {
        action();
        Every(period, period, action);
    });
}

/// Counts one more of whatever a trace source reports. Bind with MakeBoundCallback(&Count<...>, &counter).
template <typename... Ignored>
inline void
Count(uint64_t* counter, Ignored...)
{
    ++*counter;
}

/// Counts the PPDUs that `device` puts on the air.
inline void
CountTransmissions(ns3::Ptr<ns3::WifiNetDevice> device, uint64_t* counter)
{
    device->GetPhy()->TraceConnectWithoutContext(
        "PhyTxBegin",
        ns3::MakeBoundCallback(&Count<ns3::Ptr<const ns3::Packet>, double>, counter));
}

} // namespace peer

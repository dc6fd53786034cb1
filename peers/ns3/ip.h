// SPDX-License-Identifier: GPL-2.0-only
// IPv4 over the devices of peer.h, without ARP on the air and without a queue between IP and the MAC.
#pragma once

#include "peer.h"

#include "ns3/internet-module.h"
#include "ns3/traffic-control-module.h"

namespace peer
{

/// One subnet for all devices, which are interface 1 of their nodes; address i belongs to device i.
inline ns3::Ipv4InterfaceContainer
InstallIp(const ns3::NetDeviceContainer& devices)
{
    ns3::InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(ns3::Ipv4StaticRoutingHelper());
    for (uint32_t i = 0; i < devices.GetN(); i++)
    {
        stack.Install(devices.Get(i)->GetNode());
    }
    auto addresses = ns3::Ipv4AddressHelper("10.0.0.0", "255.255.0.0").Assign(devices);
    ns3::TrafficControlHelper().Uninstall(devices);
    return addresses;
}

/// Node `from` knows the MAC address of node `to`.
inline void
Introduce(const ns3::NetDeviceContainer& devices, const ns3::Ipv4InterfaceContainer& at, uint32_t from, uint32_t to)
{
    auto ip = devices.Get(from)->GetNode()->GetObject<ns3::Ipv4L3Protocol>();
    auto entry = ip->GetInterface(1)->GetArpCache()->Add(at.GetAddress(to));
    entry->SetMacAddress(devices.Get(to)->GetAddress());
    entry->MarkPermanent();
}

} // namespace peer

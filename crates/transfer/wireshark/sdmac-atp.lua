-- Shows ATP (and TCP behind the same header) in Wireshark and tshark: docs/src/atp.md has the header bit by bit.
--
-- Wireshark: put this file into the folder for personal Lua plugins (Help, About, Folders).
-- tshark:    tshark -X lua_script:sdmac-atp.lua -r file.pcapng
-- It takes UDP port 7800, and others by "Decode As", or -d udp.port==7801,sdmac-atp.
-- SPDX-License-Identifier: MIT OR Apache-2.0

local atp = Proto("sdmac-atp", "ATP (sdmac)")

local HEADER = 24
local BLOCK = 8
local MAX_BLOCKS = 20
local MAX_DATA = 1448
local PROTOCOLS = { [1] = "TCP behind the header of ATP", [2] = "ATP" }

local flag_names = {
    { 0x8000, "sack_more", "SACK_MORE: no data came for half an epoch" },
    { 0x4000, "sack_opt", "SACK_OPT: a feedback" },
    { 0x2000, "sack_req", "SACK_REQ: answer at once" },
    { 0x1000, "path_failure", "Path failure" },
    { 0x0020, "urg", "URG" },
    { 0x0010, "ack", "ACK" },
    { 0x0008, "psh", "PSH" },
    { 0x0004, "rst", "RST" },
    { 0x0002, "syn", "SYN" },
    { 0x0001, "fin", "FIN" },
}

local f = atp.fields
f.protocol = ProtoField.uint8("sdmac-atp.protocol", "Protocol", base.DEC, PROTOCOLS)
f.version = ProtoField.uint8("sdmac-atp.version", "Version")
f.flags = ProtoField.uint16("sdmac-atp.flags", "Flags", base.HEX)
for _, flag in ipairs(flag_names) do
    f[flag[2]] = ProtoField.bool("sdmac-atp.flags." .. flag[2], flag[3], 16, nil, flag[1])
end
f.size = ProtoField.uint16("sdmac-atp.size", "SACK length (TCP: window)")
f.hops = ProtoField.uint8("sdmac-atp.hops", "Hops passed")
f.raw_delay = ProtoField.bool("sdmac-atp.raw_delay", "Hops tell D as it is", 8, nil, 0x01)
f.is_sealed = ProtoField.bool("sdmac-atp.is_sealed", "Sealed", 8, nil, 0x02)
f.of_reader = ProtoField.bool("sdmac-atp.of_reader", "The delay is that of the reader", 8, nil, 0x04)
f.sequence = ProtoField.uint32("sdmac-atp.sequence", "Sequence number")
f.acknowledgement = ProtoField.uint32("sdmac-atp.acknowledgement", "Acknowledgement number")
f.delay = ProtoField.uint32("sdmac-atp.delay", "Delay D (TCP: time stamp), us")
f.spacing = ProtoField.uint32("sdmac-atp.spacing", "Spacing (TCP: time stamp echoed), us")
f.left = ProtoField.uint32("sdmac-atp.block.left", "First number missing")
f.right = ProtoField.uint32("sdmac-atp.block.right", "First number after it")
f.data = ProtoField.bytes("sdmac-atp.data", "Data")
f.counter = ProtoField.uint64("sdmac-atp.counter", "Counter")
f.sealed = ProtoField.bytes("sdmac-atp.sealed", "Sealed packet")
f.handshake = ProtoField.uint8("sdmac-atp.handshake", "Handshake", base.DEC, { [1] = "call", [2] = "answer" })

local wrong = ProtoExpert.new("sdmac-atp.wrong", "Not as the header has it", expert.group.MALFORMED, expert.severity.WARN)
atp.experts = { wrong }

-- The handshake of keyed connections.
local function handshake(buffer, tree)
    tree:add(f.handshake, buffer(2, 1))
    tree:add(f.sealed, buffer(3))
    return "Handshake, " .. (buffer(2, 1):uint() == 1 and "call" or "answer")
end

local function names(flags)
    local on = {}
    for _, flag in ipairs(flag_names) do
        if math.floor(flags / flag[1]) % 2 == 1 then
            on[#on + 1] = flag[2]:upper()
        end
    end
    return #on > 0 and table.concat(on, ",") or "data"
end

function atp.dissector(buffer, pinfo, root)
    if buffer:len() >= 3 and buffer(0, 2):uint() == 0x5301 then
        pinfo.cols.protocol = "ATP"
        local tree = root:add(atp, buffer(), "ATP")
        pinfo.cols.info = handshake(buffer, tree)
        return buffer:len()
    end
    if buffer:len() < HEADER or not PROTOCOLS[buffer(0, 1):uint()] or buffer(1, 1):uint() ~= 1 then
        return 0
    end
    local is_atp = buffer(0, 1):uint() == 2
    local flags = buffer(2, 2):uint()
    local size = buffer(4, 2):uint()
    local feedback = is_atp and math.floor(flags / 0x4000) % 2 == 1
    -- of the packet; a capture may hold less of it
    local body = buffer:reported_len() - HEADER
    local captured = buffer:len() - HEADER
    pinfo.cols.protocol = is_atp and "ATP" or "ATP-TCP"
    local tree = root:add(atp, buffer(), PROTOCOLS[buffer(0, 1):uint()])
    tree:add(f.protocol, buffer(0, 1))
    tree:add(f.version, buffer(1, 1))
    local shown = tree:add(f.flags, buffer(2, 2))
    for _, flag in ipairs(flag_names) do
        shown:add(f[flag[2]], buffer(2, 2))
    end
    tree:add(f.size, buffer(4, 2))
    tree:add(f.hops, buffer(6, 1))
    tree:add(f.raw_delay, buffer(7, 1))
    tree:add(f.is_sealed, buffer(7, 1))
    tree:add(f.of_reader, buffer(7, 1))
    tree:add(f.sequence, buffer(8, 4))
    tree:add(f.acknowledgement, buffer(12, 4))
    tree:add(f.delay, buffer(16, 4))
    tree:add(f.spacing, buffer(20, 4))
    local info = string.format(
        is_atp and "%s seq=%u ack=%u D=%u us, %u hops" or "%s seq=%u ack=%u stamp=%u, %u hops",
        names(flags), buffer(8, 4):uint(), buffer(12, 4):uint(), buffer(16, 4):uint(), buffer(6, 1):uint()
    )
    if math.floor(buffer(7, 1):uint() / 2) % 2 == 1 and body >= 8 then
        if captured >= 8 then
            tree:add(f.counter, buffer(HEADER, 8))
        end
        if captured > 8 then
            tree:add(f.sealed, buffer(HEADER + 8))
        end
        info = info .. ", sealed"
    elseif feedback then
        if size ~= body or size % BLOCK ~= 0 or size > MAX_BLOCKS * BLOCK then
            tree:add_proto_expert_info(wrong, "the SACK length does not fit the body, or is longer than 20 blocks")
        end
        for at = HEADER, buffer:len() - BLOCK, BLOCK do
            tree:add(f.left, buffer(at, 4))
            tree:add(f.right, buffer(at + 4, 4))
        end
        info = info .. string.format(", %u missing", math.floor(size / BLOCK))
    else
        if is_atp and size ~= 0 then
            tree:add_proto_expert_info(wrong, "a SACK length in a packet that is no feedback")
        end
        if body > MAX_DATA then
            tree:add_proto_expert_info(wrong, "more than 1448 octets of data")
        end
        if captured > 0 then
            tree:add(f.data, buffer(HEADER))
        end
        if body > 0 then
            info = info .. string.format(", %u octets", body)
        end
    end
    pinfo.cols.info = info
    return buffer:len()
end

DissectorTable.get("udp.port"):add(7800, atp)

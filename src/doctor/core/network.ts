/** Checks of links, addresses, routes, names and ports. */
import { countText } from '../../base/text/count-text.ts';
import type { DefaultRoute, Finding, HostFacts } from '../port.ts';
import {
  check,
  error,
  ok,
  orOk,
  restartCommand,
  rootFlag,
  shell,
  skipped,
  unknown,
  warning,
  writeDropIn,
} from './check.ts';

/** Size of the IPv4 and ICMP headers in bytes. */
const ECHO_OVERHEAD = 28;
const MIN_MTU = 1280;

const ports = check({
  id: 'ports',
  title: 'the ports of the components are free or used by the components',
  group: 'network',
  preflight: true,
  explanation: 'No other program listens on a port that a component of this host needs. The owner is named.',
  needs: ['ports', 'host'],
  run: ({ ports: { wanted, listeners }, host }) => {
    const findings = wanted.flatMap(({ protocol, port, what, field }) => {
      const other = listeners.find((each) => each.protocol === protocol && each.port === port && !each.own);
      if (other === undefined) return [];
      const { pid, program } = other;
      const owner = pid === undefined ? 'another program' : `${program} (pid ${pid})`;
      const unit = pid === undefined ? `ss -lntup 'sport = :${port}'` : `kill ${pid}`;
      return [
        error(
          `${protocol} port ${port} for ${what} is in use by ${owner}`,
          `${unit}    # or set ${field} in ${shell(host.bootstrapFile)}`,
        ),
      ];
    });
    return orOk(findings, wanted.map(({ port }) => port).join(' '));
  },
});

/** Commands that change the host name. A master that runs registers a second Node, so its former Node is deleted. */
function renaming(host: HostFacts): string {
  const rename = 'hostnamectl set-hostname edge-$(cut -c 1-6 /etc/machine-id)';
  // A node cannot request a certificate with another name than its own.
  if (host.installed && !host.roles.includes('master'))
    return `${rename}    # then reset this host and join it again with a new token`;
  // The address of the pod bridge belongs to the former Node, so clients could not reach the API server any more.
  if (!host.installed || host.nodeIpIsBridge) return `${rename}    # or any other name`;
  const registered = `timeout 300 sh -c 'until kubectl get node "$(hostname)" | grep -q " Ready "; do sleep 2; done'`;
  return `${rename} && ${restartCommand(host)} && ${registered} && kubectl delete node ${shell(host.nodeName)}`;
}

const hostName = check({
  id: 'host-name',
  title: 'the host name is valid and unique',
  group: 'network',
  preflight: true,
  explanation:
    'The name is not localhost, is valid as a node name, and no other machine of the ring or cluster has it.',
  needs: ['identity', 'host'],
  run: ({ identity: { hostName: name }, host }) => {
    const fix = renaming(host);
    if (host.nodeName === 'localhost' || host.nodeName.startsWith('localhost.'))
      return [warning(`the host name is ${name}, the default of hosts without a name`, fix)];
    if (host.nodeName.length > 63) return [error(`${host.nodeName} has more than 63 characters`, fix)];
    return [ok(host.nodeName)];
  },
});

const duplicateName = check({
  id: 'duplicate-name',
  title: 'no other machine has the name of this host',
  group: 'network',
  explanation: 'The Node of this name has this machine’s machine-id, and one member of the ring has the name.',
  needs: ['identity', 'host', 'nodes', 'ring'],
  run: ({ identity, host, nodes, ring }) => {
    const fix = 'hostnamectl set-hostname NAME    # or node.name in the bootstrap file';
    const own = nodes.find(({ name }) => name === host.nodeName);
    if (own?.ready === true && own.machineId !== identity.machineId && own.machineId !== '')
      return [
        error(
          `node ${host.nodeName} is Ready on the machine ${own.machineId}, but this machine is ${identity.machineId}`,
          fix,
        ),
      ];
    const twin = ring.find(({ name, self }) => name === host.nodeName && !self);
    if (twin !== undefined)
      return [error(`${twin.address} is a member of the ring with the name ${twin.name} too`, fix)];
    return [ok(`compared ${countText(nodes.length, 'node')} and ${countText(ring.length, 'member')}`)];
  },
});

const MACHINE_FIX = 'rm /etc/machine-id && systemd-machine-id-setup && reboot';

const machineId = check({
  id: 'machine-id',
  title: 'the machine-id is set',
  group: 'network',
  preflight: true,
  explanation: '/etc/machine-id has 32 hexadecimal digits. Golden images without one get it at the first boot.',
  needs: ['identity'],
  run: ({ identity: { machineId: id } }) =>
    /^[0-9a-f]{32}$/.test(id)
      ? [ok(id)]
      : [warning(id === '' ? '/etc/machine-id is empty or missing' : `/etc/machine-id is ${id}`, MACHINE_FIX)],
});

const duplicateMachineId = check({
  id: 'duplicate-machine-id',
  title: 'no other node has the machine-id of this host',
  group: 'network',
  explanation: 'Copied disks have the same machine-id; such hosts cannot be distinguished when they join.',
  needs: ['identity', 'host', 'nodes'],
  run: ({ identity, host, nodes }) => {
    const twins = nodes.filter(
      ({ name, machineId: id }) => name !== host.nodeName && id !== '' && id === identity.machineId,
    );
    return orOk(
      twins.map(({ name }) =>
        warning(`node ${name} has the machine-id of this host, ${identity.machineId}`, MACHINE_FIX),
      ),
      `compared ${countText(nodes.length, 'node')}`,
    );
  },
});

const nameResolution = check({
  id: 'name-resolution',
  title: 'name servers answer',
  group: 'network',
  explanation: 'At least one name server of /etc/resolv.conf answers; the host name resolves.',
  needs: ['resolution'],
  run: ({ resolution: { servers, ownName, ownAddresses } }) => {
    const findings: Finding[] = [];
    if (servers.length === 0)
      findings.push(
        warning(
          '/etc/resolv.conf names no server: pods resolve cluster names only',
          "echo 'nameserver ADDRESS' >> /etc/resolv.conf    # or dns.upstreams in the bootstrap file",
        ),
      );
    const failed = servers.filter(({ problem }) => problem !== undefined);
    for (const { address, problem } of failed)
      findings.push(
        warning(
          `name server ${address} does not answer: ${problem}`,
          // Overwrite the file instead of replacing it as sed -i does, because it may be a bind mount or a link to a
          // generated file.
          'cp /etc/resolv.conf /run/resolv.conf.bad && ' +
            `grep -vwF ${shell(`nameserver ${address}`)} /run/resolv.conf.bad > /etc/resolv.conf` +
            `    # or restore the server; test: nslookup localhost ${address}`,
        ),
      );
    if (ownAddresses.length === 0)
      findings.push(warning(`the host name ${ownName} does not resolve`, `echo '127.0.1.1 ${ownName}' >> /etc/hosts`));
    return orOk(findings, servers.map(({ address }) => address).join(', '));
  },
});

const defaultRoute = check({
  id: 'default-route',
  title: 'the host has a default route',
  group: 'network',
  preflight: true,
  explanation: 'A default route determines the address of the node. Without one, node.ip must be set.',
  needs: ['routes', 'host'],
  run: ({ routes, host }) => {
    const [first] = routes;
    if (first === undefined) {
      if (host.nodeIpGiven) return [ok(`none; node.ip is ${host.nodeIp}`)];
      const evidence = `no default route; the node uses ${host.nodeIp}`;
      const add = 'ip route add default via GATEWAY dev LINK';
      if (host.nodeIpIsBridge)
        return [warning(`${evidence}, the address of the pod bridge; no link has an address`, add)];
      const keep = writeDropIn(host, '60-node-ip.yaml', `node: {ip: "${host.nodeIp}"}`);
      // Before an installation there is no service to restart.
      const apply = host.installed ? `${keep} && ${restartCommand(host)}` : keep;
      return [warning(evidence, `${apply}    # or: ${add}`)];
    }
    const same = routes.filter(({ family, metric }) => family === first.family && metric === first.metric);
    const links = [...new Set(same.map(({ link }) => link))];
    if (links.length > 1)
      return [
        warning(
          `default routes of equal metric over ${links.join(' and ')}: packets leave by either link`,
          lowerPreference(same.find(({ link }) => link !== first.link) ?? first),
        ),
      ];
    return [ok(`via ${first.gateway} dev ${first.link}`)];
  },
});

function lowerPreference({ family, gateway, link, metric }: DefaultRoute): string {
  const ip = family === 6 ? 'ip -6' : 'ip';
  const via = /^[0.:]+$/.test(gateway) ? '' : `via ${shell(gateway)} `;
  const route = `default ${via}dev ${shell(link)}`;
  return `${ip} route add ${route} metric ${metric + 100} && ${ip} route del ${route} metric ${metric}`;
}

const mtu = check({
  id: 'mtu',
  title: 'packets of full size reach the peers',
  group: 'network',
  explanation: 'A packet of the link’s MTU that must not be fragmented is answered by each member of the ring.',
  needs: ['paths', 'links'],
  run: ({ paths, links }) => {
    const findings: Finding[] = links
      .filter(({ mtu: size, state, name }) => size < MIN_MTU && state !== 'down' && name !== 'lo')
      .map(({ name, mtu: size }) =>
        warning(`${name} has an MTU of ${size}, below ${MIN_MTU}`, `ip link set ${shell(name)} mtu 1500`),
      );
    for (const { name, address, link, linkMtu, whole, small } of paths) {
      if (small === true && whole === false)
        findings.push(
          error(
            `packets of ${linkMtu} bytes do not reach ${name} (${address}) over ${link}, small ones do`,
            `ping -M do -s ${linkMtu - ECHO_OVERHEAD} -c 1 ${shell(address)}; ` +
              `ip link set ${shell(link)} mtu 1400    # on every host: the least MTU of the path`,
          ),
        );
      else if (small === false)
        findings.push(warning(`${name} (${address}) does not answer echo requests`, `ping -c 3 ${shell(address)}`));
    }
    if (findings.length > 0) return findings;
    const untested = paths.filter(({ small }) => small === undefined).length;
    if (untested > 0) return [unknown('no ping program with -M do', 'apt-get install iputils-ping')];
    return paths.length === 0 ? [skipped('no peers')] : [ok(`${paths.length} peers`)];
  },
});

const duplicateAddress = check({
  id: 'duplicate-address',
  title: 'no other machine has an address of this host',
  group: 'network',
  preflight: true,
  explanation: 'Duplicate address detection of IPv6, and of IPv4 with arping if it is installed.',
  needs: ['links', 'conflicts'],
  run: ({ links, conflicts }) => {
    const fix = 'ip addr    # change the static address, or renew the lease: networkctl renew LINK';
    const findings = [
      ...links.flatMap(({ name, duplicates }) =>
        duplicates.map((address) => error(`${address} on ${name} belongs to another machine too`, fix)),
      ),
      ...conflicts.map(({ address, link, mac }) =>
        error(`${address} on ${link} is also the address of the machine with MAC ${mac}`, fix),
      ),
    ];
    return orOk(findings, 'no conflict detected');
  },
});

const overlappingRanges = check({
  id: 'pod-ranges',
  title: 'ranges of pods and services do not contain this host',
  group: 'network',
  preflight: true,
  explanation: 'The node’s address is outside of network.clusterCIDR and network.serviceCIDR.',
  needs: ['host'],
  run: ({ host }) => {
    const ranges = [...host.clusterCidrs, ...host.serviceCidrs];
    const within = host.nodeIpIsBridge ? undefined : ranges.find((range) => contains(range, host.nodeIp));
    if (within !== undefined)
      return [
        error(
          `the address of this host, ${host.nodeIp}, is in ${within}, a range of pods or services`,
          `set network.clusterCIDR and network.serviceCIDR in ${shell(host.bootstrapFile)} to other ranges, ` +
            `then: hyperedge config check${rootFlag(host.root)}`,
        ),
      ];
    return [ok(ranges.join(' '))];
  },
});

/** Whether an IPv4 range in CIDR notation contains the address. */
function contains(range: string, address: string): boolean {
  const [base = '', bits = '32'] = range.split('/');
  const [left, right] = [numberOf(base), numberOf(address)];
  if (left === undefined || right === undefined) return false;
  const size = 2 ** (32 - Number(bits));
  return Math.floor(left / size) === Math.floor(right / size);
}

function numberOf(address: string): number | undefined {
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part <= 255))) return undefined;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

export const networkChecks = [
  ports,
  hostName,
  duplicateName,
  machineId,
  duplicateMachineId,
  nameResolution,
  defaultRoute,
  mtu,
  duplicateAddress,
  overlappingRanges,
];

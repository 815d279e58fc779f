/** Host ports of pods on ports of the appliance: no pod may receive their traffic. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerPort, Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { eventually } from '../../e2e/harness.ts';
import { isReady, shell } from '../../e2e/pods/lab.ts';
import type { AttackLab, Tenant } from '../lab.ts';
import type { AttackCase } from '../port.ts';

/** Ports of API server, controllers, etcd, kubelet and gossip on a host with default settings. */
const OWN: readonly ContainerPort[] = [
  ...[8443, 8444, 2379, 10_250, 7946].map((hostPort) => ({ containerPort: 8080, hostPort, protocol: 'TCP' })),
  { containerPort: 8080, hostPort: 7946, protocol: 'UDP' },
  ...['127.0.0.1', '0.0.0.0', '::'].map((hostIP) => ({ containerPort: 8080, hostPort: 8443, hostIP })),
];
const FREE_PORT = 18_181;
const WEB = 'mkdir -p /tmp/w; echo pod > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w';

async function create(lab: AttackLab, tenant: Tenant, name: string, port: ContainerPort, more: Partial<PodSpec>) {
  const containers = [shell(WEB, { ports: [port] })];
  const made = await lab.request(tenant, 'POST', `/api/v1/namespaces/${tenant.namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 0, containers, ...more },
  });
  assert.equal(made.code, 201, made.body);
}

const seen = (lab: AttackLab, tenant: Tenant, name: string, what: string, holds: (pod: Pod) => boolean): Promise<Pod> =>
  lab.pods.untilPods(`${tenant.namespace}/${name} ${what}`, () => {
    const pod = lab.pods.pod(name, tenant.namespace);
    return pod !== undefined && holds(pod) ? pod : undefined;
  });

const isUnschedulable = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') === true;

/** Elements of a map in the appliance's nftables tables, as nft prints them. */
async function elements(lab: AttackLab, table: string, map: string): Promise<string> {
  const { stdout } = await lab.appliance.inside('nft', ['list', 'map', 'ip', table, map]);
  return /elements = \{([^}]*)\}/.exec(stdout)?.[1]?.replaceAll(/\s+/g, ' ').trim() ?? '';
}

async function tables(lab: AttackLab): Promise<{ readonly services: string; readonly pods: string }> {
  const { stdout } = await lab.appliance.inside('nft', ['list', 'tables']);
  const names = [...stdout.matchAll(/^table ip (\S+)$/gm)].map(([, name = '']) => name);
  const pods = names.find((name) => name.endsWith('-pods')) ?? '';
  return { pods, services: pods.replace(/-pods$/, '') };
}

/** Checks that the control plane and the kubelet respond, not a pod. */
async function answersItself(lab: AttackLab, address: string): Promise<void> {
  assert.deepEqual(await lab.curl(`https://${address}:8443/readyz`), { code: 200, body: 'ok' });
  assert.equal((await lab.curl(`https://${address}:10250/pods`)).code, 401);
}

export const cases: readonly AttackCase[] = [
  {
    finding: 3,
    title: 'a host port of the control plane, the kubelet or gossip is refused by scheduler and kubelet',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const nodeName = await lab.pods.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}');
      for (const [index, port] of OWN.entries()) {
        await create(lab, tenant, `direct-${index}`, port, { nodeName });
        await create(lab, tenant, `scheduled-${index}`, port, {});
      }
      const onHost = { containerPort: 10_250, hostPort: 10_250 };
      await create(lab, tenant, 'direct-host', onHost, { nodeName, hostNetwork: true });
      await create(lab, tenant, 'scheduled-host', onHost, { hostNetwork: true });
      for (const name of [...OWN.keys(), 'host']) {
        const direct = await seen(lab, tenant, `direct-${name}`, 'over', ({ status }) => status?.phase === 'Failed');
        assert.equal(direct.status?.reason, 'NodePorts', `direct-${name}: ${direct.status?.message}`);
        assert.ok(await seen(lab, tenant, `scheduled-${name}`, 'unschedulable', isUnschedulable));
      }
      await create(lab, tenant, 'free', { containerPort: 8080, hostPort: FREE_PORT - 1 }, {});
      const free = await seen(lab, tenant, 'free', 'ready', isReady);
      const hostIp = free.status?.hostIP ?? '';
      const open = await elements(lab, (await tables(lab)).pods, 'host_ports');
      assert.match(open, new RegExp(`tcp \\. ${FREE_PORT - 1} :`));
      for (const { hostPort } of OWN) assert.doesNotMatch(open, new RegExp(` \\. ${hostPort} :`));
      await answersItself(lab, hostIp);
      await answersItself(lab, '127.0.0.1');
      await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
    },
  },
  {
    finding: 3,
    title: 'a restart of the host process removes reserved host ports and stale entries from the port maps',
    exclusive: true,
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      await create(lab, tenant, 'free', { containerPort: 8080, hostPort: FREE_PORT }, {});
      await create(lab, tenant, 'recorded', { containerPort: 8080, hostPort: FREE_PORT + 1 }, {});
      const { status } = await seen(lab, tenant, 'free', 'ready', isReady);
      await seen(lab, tenant, 'recorded', 'ready', isReady);
      const hostIp = status?.hostIP ?? '';
      const { pods, services } = await tables(lab);
      await lab.appliance.halt('SIGKILL');
      // State that a version without the reservation left behind: a record of the pod network, and elements of both
      // tables.
      const records = join(lab.appliance.root, 'var/lib/origin/network');
      for (const file of await readdir(records)) {
        const record = await readFile(join(records, file), 'utf8');
        await writeFile(join(records, file), record.replace(`"hostPort":${FREE_PORT + 1}`, '"hostPort":8443'));
      }
      const stale = await lab.appliance.inside('nft', ['-f', '-'], {
        input: `add element ip ${pods} host_ports { tcp . 10250 : ${status?.podIP} . 8080, tcp . 8444 : ${status?.podIP} . 8080 }
add element ip ${services} service_ips { ${hostIp} . tcp . 8443 : drop, 192.0.2.77 . tcp . 80 : drop }
add element ip ${services} service_nodeports { tcp . 10250 : drop }\n`,
      });
      assert.equal(stale.code, 0, stale.stderr);
      await lab.appliance.start();
      await eventually('service rules without stale elements', 20_000, async () =>
        (await elements(lab, services, 'service_ips')).includes('192.0.2.77') ? undefined : true,
      );
      const open = await elements(lab, pods, 'host_ports');
      assert.equal(open, `tcp . ${FREE_PORT} : ${status?.podIP} . 8080`);
      assert.doesNotMatch(await elements(lab, services, 'service_ips'), /tcp \. 8443 :/);
      assert.doesNotMatch(await elements(lab, services, 'service_nodeports'), /\. 10250 :/);
      await answersItself(lab, hostIp);
      await answersItself(lab, '127.0.0.1');
      assert.equal((await lab.curl(`http://${hostIp}:${FREE_PORT}/`)).body, 'pod\n');
      await lab.pods.kubectl('delete', 'namespace', tenant.namespace, '--wait=false');
    },
  },
];

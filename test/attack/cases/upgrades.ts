/** Upgraded connections, which need more than read permission even if the method is GET. */
import assert from 'node:assert/strict';
import { pod } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

const HANDSHAKE = [
  ...['--http1.1', '--max-time', '5', '-H', 'Connection: Upgrade'],
  ...['-H', 'Sec-WebSocket-Version: 13', '-H', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
  ...['-H', 'Sec-WebSocket-Protocol: v5.channel.k8s.io'],
];

export const cases: readonly AttackCase[] = [
  {
    finding: 13,
    title: 'a user with only the verb get on nodes/proxy cannot run commands, through the API server or at the kubelet',
    attack: async (lab) => {
      const tenant = await lab.tenant();
      const { namespace } = tenant;
      const account = `--serviceaccount=${namespace}:attacker`;
      const verbs = '--verb=get,list,watch';
      const resources = '--resource=nodes/proxy,pods/proxy,services/proxy,pods/exec,pods/attach,pods/portforward';
      await lab.pods.kubectl('create', 'clusterrole', namespace, verbs, resources);
      await lab.pods.kubectl('create', 'clusterrolebinding', namespace, `--clusterrole=${namespace}`, account);
      await lab.pods.apply(pod('victim-of-upgrades', {}));
      const victim = await lab.pods.ready('victim-of-upgrades');
      const command = 'command=sh&command=-c&command=echo%20owned%20%3E%20/tmp/owned&output=1&error=1';
      const kubelet = `/exec/default/victim-of-upgrades/main?${command}`;
      const node = `/api/v1/nodes/${victim.spec?.nodeName}/proxy`;
      const ofPod = '/api/v1/namespaces/default/pods/victim-of-upgrades';
      const token = ['-H', `Authorization: Bearer ${tenant.token}`];
      for (const [what, url] of [
        ['nodes/proxy', `https://127.0.0.1:8443${node}${kubelet}`],
        ['nodes/proxy as watch', `https://127.0.0.1:8443${node.replace('/nodes', '/watch/nodes')}${kubelet}`],
        ['pods/exec', `https://127.0.0.1:8443${ofPod}/exec?${command.replace('output=1&error=1', 'stdout=1')}`],
        [
          'pods/exec as watch',
          `https://127.0.0.1:8443${ofPod.replace('/namespaces', '/watch/namespaces')}/exec?${command}`,
        ],
        ['pods/proxy', `https://127.0.0.1:8443${ofPod}:8080/proxy/`],
        ['the kubelet', `https://${victim.status?.hostIP}:10250${kubelet}`],
      ] as const) {
        for (const protocol of ['websocket', 'SPDY/3.1']) {
          const answer = await lab.curl(url, [...HANDSHAKE, '-H', `Upgrade: ${protocol}`, ...token]);
          const expected = what.endsWith('watch') ? 404 : 403;
          assert.equal(answer.code, expected, `${what}, ${protocol}: ${answer.code} ${answer.body.slice(0, 200)}`);
        }
      }
      // Requests without an upgrade are still allowed.
      const read = await lab.request(tenant, 'GET', `${node}/pods`);
      assert.equal(read.code, 200, read.body.slice(0, 200));
      const listed = await lab.pods.exec('victim-of-upgrades', 'ls', '/tmp').catch(() => '');
      assert.ok(!listed.includes('owned'));
      await lab.pods.remove('victim-of-upgrades');
      await lab.pods.kubectl('delete', `clusterrolebinding/${namespace}`, `clusterrole/${namespace}`);
    },
  },
];

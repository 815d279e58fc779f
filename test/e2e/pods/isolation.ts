/** Access of a pod to its host and to host information. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import type { PodSpec, SecurityContext } from '../../../src/api/generated/core/v1.ts';
import { helloImage } from '../images.ts';
import { assignments, idle, isReady, type PodLab, pod, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };

const STATUS = `
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp|Uid|Gid)' /proc/self/status | tr '\\t' ' ' | sed 's/: */=/'
touch /new 2>/dev/null; echo "root=$?"; mount -t tmpfs none /tmp 2>/dev/null; echo "mount=$?"
unshare -n true 2>/dev/null; echo "unshare=$?"; echo "devices=$(ls /dev | wc -l)"; id -u | sed 's/^/id=/'`;

export function securityTests(lab: () => PodLab): void {
  test(
    'the kernel enforces users, capabilities, privileges, the system-call filter and a read-only root of a pod',
    LIMIT,
    async () => {
      const contexts: Record<string, SecurityContext> = {
        plain: {},
        user: { runAsUser: 1234, runAsGroup: 5678, runAsNonRoot: true, allowPrivilegeEscalation: false },
        dropped: { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] }, readOnlyRootFilesystem: true },
        added: { capabilities: { add: ['SYS_ADMIN'] } },
        privileged: { privileged: true },
        filtered: { seccompProfile: { type: 'RuntimeDefault' } },
        unconfined: { seccompProfile: { type: 'Unconfined' } },
      };
      const containers = Object.entries(contexts).map(([name, securityContext]) =>
        shell(STATUS, { name, securityContext }),
      );
      await lab().apply(pod('secured', { restartPolicy: 'Never', containers }));
      await lab().over('secured');
      const output = new Map<string, Map<string, string>>();
      for (const name of Object.keys(contexts)) output.set(name, assignments(await lab().logs('secured', '-c', name)));
      const of = (name: string, field: string): string | undefined => output.get(name)?.get(field);
      const capabilities = (name: string, field = 'CapEff'): bigint => BigInt(`0x${of(name, field)}`);
      assert.equal(capabilities('plain'), 0xa80425fbn);
      assert.deepEqual([of('plain', 'root'), of('plain', 'mount'), of('plain', 'NoNewPrivs')], ['0', '1', '0']);
      assert.equal(of('user', 'Uid'), '1234 1234 1234 1234');
      assert.equal(of('user', 'Gid'), '5678 5678 5678 5678');
      assert.equal(of('user', 'NoNewPrivs'), '1');
      assert.equal(capabilities('user'), 0n);
      assert.equal(capabilities('dropped', 'CapBnd'), 1n << 10n);
      assert.equal(of('dropped', 'root'), '1');
      assert.equal(capabilities('added') & (1n << 21n), 1n << 21n);
      assert.equal(of('added', 'mount'), '0');
      assert.equal(of('privileged', 'mount'), '0');
      assert.ok(Number(of('privileged', 'devices')) > Number(of('plain', 'devices')) + 5, of('privileged', 'devices'));
      assert.deepEqual(
        ['plain', 'filtered', 'added', 'unconfined', 'privileged'].map((name) => of(name, 'Seccomp')),
        ['2', '2', '2', '0', '0'],
      );
      assert.equal(of('filtered', 'unshare'), '1');
      await lab().remove('secured');
    },
  );

  test('rejects unsupported settings of a pod with a reason instead of ignoring them', LIMIT, async () => {
    const refused = (name: string, securityContext: SecurityContext, spec: Partial<PodSpec> = {}): object =>
      pod(name, { ...spec, containers: [idle({ securityContext })] });
    await lab().apply(
      refused('as-root', { runAsNonRoot: true }),
      refused('as-zero', { runAsNonRoot: true, runAsUser: 0 }),
      refused('profile', { seccompProfile: { type: 'Localhost', localhostProfile: 'mine.json' } }),
      refused('apparmor', { appArmorProfile: { type: 'RuntimeDefault' } }),
      refused('userns', {}, { hostUsers: false, shareProcessNamespace: true }),
    );
    const messageOf = async (name: string, reason = 'CreateContainerConfigError'): Promise<string> => {
      const waiting = await lab().until(
        name,
        'refused',
        (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === reason,
      );
      return waiting.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '';
    };
    assert.match(
      await messageOf('as-root'),
      /^container has runAsNonRoot and image will run as root \(pod: "as-root_default\([-0-9a-f]+\)", container: main\)$/,
    );
    assert.match(await messageOf('as-zero'), /^container's runAsUser breaks non-root policy/);
    assert.match(await messageOf('profile', 'CreateContainerError'), /seccomp.*mine\.json/);
    const reasonOf = async (name: string): Promise<unknown> => {
      const { status } = await lab().until(name, 'blocked', (each) => each.status?.reason !== undefined);
      return [status?.phase, status?.reason, status?.containerStatuses?.[0]?.state?.waiting?.reason];
    };
    assert.deepEqual(await reasonOf('apparmor'), ['Pending', 'AppArmor', 'Blocked']);
    assert.deepEqual(await reasonOf('userns'), ['Pending', 'PodFieldNotSupported', 'Blocked']);
    await lab().event('userns', 'PodFieldNotSupported', /^spec\.shareProcessNamespace: not supported by this node/);
    await lab().remove('as-root', 'as-zero', 'profile', 'apparmor', 'userns');
  });
}

export function namespaceTests(lab: () => PodLab): void {
  test("a host PID namespace shows the host's processes, a shared PID namespace only the pod's", LIMIT, async () => {
    const look = `for n in net pid ipc uts; do echo "$n=$(readlink /proc/self/ns/$n)"; done; echo "processes=$(ls /proc | grep -c '^[0-9]')"; echo "name=$(hostname)"; sleep 1000`;
    await lab().apply(
      pod('ns-own', { containers: [shell(look), shell(look, { name: 'second' })] }),
      pod('ns-host', { hostNetwork: true, hostPID: true, hostIPC: true, containers: [shell(look)] }),
      pod('ns-shared', {
        shareProcessNamespace: true,
        containers: [shell(look), shell('exec sleep 4242', { name: 'second' })],
      }),
    );
    for (const name of ['ns-own', 'ns-host', 'ns-shared']) await lab().ready(name);
    const own = assignments(await lab().logs('ns-own', '-c', 'main'));
    const second = assignments(await lab().logs('ns-own', '-c', 'second'));
    const host = assignments(await lab().logs('ns-host'));
    assert.equal(own.get('net'), second.get('net'));
    assert.equal(own.get('ipc'), second.get('ipc'));
    assert.notEqual(own.get('pid'), second.get('pid'));
    assert.equal(own.get('name'), 'ns-own');
    for (const kind of ['net', 'pid', 'ipc', 'uts']) assert.notEqual(own.get(kind), host.get(kind), kind);
    const outside = await lab().appliance.inside('sh', [
      '-c',
      'for n in net pid ipc; do readlink /proc/self/ns/$n; done',
    ]);
    assert.deepEqual([host.get('net'), host.get('pid'), host.get('ipc')], outside.stdout.trim().split('\n'));
    assert.equal(host.get('name'), hostname());
    assert.equal(lab().pod('ns-host')?.status?.podIP, lab().pod('ns-host')?.status?.hostIP);
    assert.match(await lab().exec('ns-shared', 'ps', '-o', 'args'), /sleep 4242/);
    await lab().remove('ns-own', 'ns-host', 'ns-shared');
  });

  test('provides hostname, subdomain, FQDN, hosts and resolv.conf', LIMIT, async () => {
    const show = 'hostname; cat /etc/hosts; echo ---; cat /etc/resolv.conf';
    const dnsConfig = {
      nameservers: ['192.0.2.53'],
      searches: ['a.test', 'b.test'],
      options: [{ name: 'ndots', value: '2' }, { name: 'rotate' }],
    };
    await lab().apply(
      pod('names', {
        restartPolicy: 'Never',
        hostname: 'short',
        subdomain: 'sub',
        hostAliases: [{ ip: '192.0.2.1', hostnames: ['one', 'uno'] }],
        dnsPolicy: 'None',
        dnsConfig,
        containers: [shell(show)],
      }),
      pod('names-full', {
        restartPolicy: 'Never',
        hostname: 'short',
        subdomain: 'sub',
        setHostnameAsFQDN: true,
        dnsPolicy: 'Default',
        containers: [shell(show)],
      }),
    );
    const named = await lab().over('names');
    await lab().over('names-full');
    const [hosts = '', resolv = ''] = (await lab().logs('names')).split('---\n');
    assert.match(hosts, /^short\n# Kubernetes-managed hosts file/);
    const entry = `${named.status?.podIP}\tshort.sub.default.svc.cluster.local\tshort\n`;
    assert.ok(hosts.includes(entry), hosts);
    assert.match(hosts, /192\.0\.2\.1\tone\tuno\n/);
    assert.equal(resolv, 'nameserver 192.0.2.53\nsearch a.test b.test\noptions ndots:2 rotate\n');
    const full = await lab().logs('names-full');
    assert.match(full, /^short\.sub\.default\.svc\.cluster\.local\n/);
    const nameservers = (text: string): string[] => text.match(/^nameserver .*$/gm) ?? [];
    const own = await lab().appliance.inside('cat', ['/etc/resolv.conf']);
    assert.deepEqual(nameservers(full), nameservers(own.stdout).slice(0, 3));
    await lab().remove('names', 'names-full');
  });

  test('forwards a host port to a pod and refuses the port to a second pod', LIMIT, async () => {
    const hostPort = 18_080;
    const web = shell('mkdir /tmp/w; echo hello-port > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w', {
      ports: [{ containerPort: 8080, hostPort }],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    });
    await lab().apply(pod('host-port', { containers: [web] }));
    const up = await lab().ready('host-port');
    const answer = await lab().appliance.inside('curl', ['-sS', '-m', '5', `http://${up.status?.hostIP}:${hostPort}/`]);
    assert.equal(answer.stdout, 'hello-port\n', answer.stderr);
    await lab().apply(pod('host-port-too', { nodeName: up.spec?.nodeName ?? '', containers: [web] }));
    const refused = await lab().over('host-port-too');
    assert.equal(refused.status?.reason, 'NodePorts');
    await lab().remove('host-port', 'host-port-too');
  });

  test("runs ephemeral containers of kubectl debug with the target's processes", LIMIT, async () => {
    await lab().apply(pod('debugged', { containers: [shell('exec sleep 777')] }));
    await lab().ready('debugged');
    await lab().kubectl(
      ...['debug', 'debugged', `--image=${helloImage}`, '--container=dbg', '--target=main', '--profile=general'],
      ...['--', '/bin/sh', '-c', 'ps -o args; echo looked'],
    );
    const over = await lab().until(
      'debugged',
      'debugged to the end',
      (each) => each.status?.ephemeralContainerStatuses?.[0]?.state?.terminated !== undefined,
    );
    assert.equal(over.status?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode, 0);
    assert.match(await lab().logs('debugged', '-c', 'dbg'), /^sleep 777$[\s\S]*^looked$/m);
    assert.ok(isReady(over), 'the pod goes on');
    await lab().remove('debugged');
  });
}

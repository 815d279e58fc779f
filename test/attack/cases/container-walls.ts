/**
 * Isolation of a container from its host: system calls, the first process of a shared PID namespace, and mounts over
 * /dev.
 */
import assert from 'node:assert/strict';
import { run } from '../../e2e/harness.ts';
import { assignments, idle, pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

/** System call numbers of Linux. get_mempolicy(2) with null pointers succeeds unless it is filtered. */
const GET_MEMPOLICY = { x64: 239, arm64: 236 }[process.arch as 'x64' | 'arm64'];
const SCHED_YIELD = { x64: 24, arm64: 124 }[process.arch as 'x64' | 'arm64'];

/** A program of a few instructions that makes one system call without arguments and exits with its errno. */
function systemCall(number: number): Buffer {
  const word = (value: number): number[] => [value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24];
  const zero = [0xd2, 0x80].toReversed();
  const code =
    process.arch === 'arm64'
      ? [
          ...[0, 1, 2, 3, 4, 5].flatMap((register) => [register, 0, ...zero]),
          ...word(0xd2800008 | (number << 5)),
          ...word(0xd4000001),
          ...word(0xcb0003e0),
          ...word(0xd2800ba8),
          ...word(0xd4000001),
        ]
      : [
          ...[0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2, 0x4d, 0x31, 0xd2, 0x4d, 0x31, 0xc0, 0x4d, 0x31, 0xc9, 0xb8],
          ...word(number),
          ...[0x0f, 0x05, 0xf7, 0xd8, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05],
        ];
  const header = Buffer.alloc(120);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(process.arch === 'arm64' ? 183 : 62, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(0x400078n, 24);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(5, 68);
  header.writeBigUInt64LE(0x400000n, 80);
  header.writeBigUInt64LE(0x400000n, 88);
  header.writeBigUInt64LE(BigInt(120 + code.length), 96);
  header.writeBigUInt64LE(BigInt(120 + code.length), 104);
  header.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([header, Buffer.from(code)]);
}

const attempt = (name: string, number: number): string =>
  `echo ${systemCall(number).toString('base64')} | base64 -d > /tmp/${name}; chmod +x /tmp/${name}; /tmp/${name}; echo "${name}=$?"`;

export const cases: readonly AttackCase[] = [
  {
    finding: 15,
    title: 'a system call outside of the default seccomp profile is denied, also in pods without a profile',
    attack: async (lab) => {
      const look = `mkdir -p /tmp; grep ^Seccomp: /proc/self/status | tr -d '\\t' | tr : =
        ${attempt('listed', SCHED_YIELD)}; ${attempt('unlisted', GET_MEMPOLICY)}`;
      await lab.pods.apply(
        pod('walls-calls', {
          restartPolicy: 'Never',
          containers: [
            shell(look, { name: 'plain' }),
            shell(look, { name: 'named', securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }),
            shell(look, { name: 'unconfined', securityContext: { seccompProfile: { type: 'Unconfined' } } }),
            shell(look, { name: 'privileged', securityContext: { privileged: true } }),
          ],
        }),
      );
      await lab.pods.over('walls-calls');
      const seen = async (name: string): Promise<object> =>
        Object.fromEntries(assignments(await lab.pods.logs('walls-calls', '-c', name)));
      assert.deepEqual(await seen('plain'), { Seccomp: '2', listed: '0', unlisted: '1' });
      assert.deepEqual(await seen('named'), { Seccomp: '2', listed: '0', unlisted: '1' });
      assert.deepEqual(await seen('unconfined'), { Seccomp: '0', listed: '0', unlisted: '0' });
      assert.deepEqual(await seen('privileged'), { Seccomp: '0', listed: '0', unlisted: '0' });
      await lab.pods.remove('walls-calls');
    },
  },
  {
    finding: 17,
    title: 'the first process of a shared PID namespace exposes no data of the host',
    attack: async (lab) => {
      const look = 'cd /proc/1/root && find . -mindepth 1 | head -n 5; ls -d /proc/1/root/proc/sys/kernel/core_pattern';
      const containers = [idle({ securityContext: { capabilities: { add: ['SYS_PTRACE'] } } })];
      await lab.pods.apply(
        pod('walls-shared', { shareProcessNamespace: true }),
        pod('walls-tracer', { shareProcessNamespace: true, containers }),
      );
      for (const name of ['walls-shared', 'walls-tracer']) {
        await lab.pods.ready(name);
        const seen = await lab.pods.exec(name, '/bin/sh', '-c', `(${look}) 2>/dev/null; echo looked`);
        assert.equal(seen, 'looked\n', name);
      }
      await lab.pods.remove('walls-shared', 'walls-tracer');
    },
  },
  {
    finding: 22,
    title: 'a volume mounted at /dev is refused if runc would use its /dev/null to mask paths',
    attack: async (lab) => {
      const version = /version ([\d.]+)/.exec((await run('runc', ['--version'])).stdout)?.[1] ?? '';
      const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
      const affected = major === 1 && (minor < 2 || (minor === 2 && patch < 8) || (minor === 3 && patch < 3));
      const shared = { volumes: [{ name: 'shared', emptyDir: {} }] };
      const plant = shell('ln -s /etc/hostname /shared/null; mkdir /shared/shm /shared/pts /shared/mqueue', {
        name: 'plant',
        volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
      });
      const look = (mountPath: string): object => ({
        ...shared,
        restartPolicy: 'Never',
        initContainers: [plant],
        containers: [shell('cat /proc/timer_list', { volumeMounts: [{ name: 'shared', mountPath }] })],
      });
      await lab.pods.apply(
        pod('walls-dev', look('/dev')),
        pod('walls-pts', look('/dev/./pts')),
        pod('walls-safe', {
          restartPolicy: 'Never',
          volumes: [
            { name: 'memory', emptyDir: { medium: 'Memory' } },
            { name: 'null', hostPath: { path: '/dev/null', type: 'CharDevice' } },
            { name: 'sys', hostPath: { path: '/sys' } },
          ],
          containers: [
            shell('touch /dev/shm/a && ls /sys/devices > /dev/null && ls /dev/mine', {
              volumeMounts: [
                { name: 'memory', mountPath: '/dev/shm' },
                { name: 'null', mountPath: '/dev/mine' },
                { name: 'sys', mountPath: '/sys', readOnly: true },
              ],
            }),
          ],
        }),
      );
      assert.equal((await lab.pods.over('walls-safe')).status?.phase, 'Succeeded');
      if (affected) {
        for (const name of ['walls-dev', 'walls-pts']) {
          const waiting = await lab.pods.until(
            name,
            'refused',
            (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerError',
          );
          const { message = '' } = waiting.status?.containerStatuses?.[0]?.state?.waiting ?? {};
          assert.match(message, /CVE-2025-31133; update runc/);
        }
      }
      await lab.pods.remove('walls-dev', 'walls-pts', 'walls-safe');
    },
  },
];

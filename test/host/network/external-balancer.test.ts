import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, it } from 'node:test';
import { promisify } from 'node:util';
import { haproxyConfig, keepalivedConfig } from '../../../src/host/network/external-balancer.ts';
import { createAuthority } from '../../client/certificates.ts';

const run = promisify(execFile);
let root = '';

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-external-'));
  for (const [path, text] of Object.entries({
    'etc/origin/bootstrap.yaml':
      'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {ip: 10.0.0.5}\nmasters: ["https://10.0.0.7:8443"]\nvip: {address: 10.0.0.100, interface: eth0}\n',
    'etc/origin/master/ca-bundle.crt': createAuthority('ca').cert,
    'var/lib/origin/masters': '10.0.0.6:8443\n10.0.0.5:8443\n',
  })) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
});
after(() => rm(root, { recursive: true }));

const servers = (text: string): string[] => [...text.matchAll(/^ {4}server \S+ (\S+)$/gm)].map(([, at = '']) => at);

it('generates a HAProxy configuration with the API servers that this host has found', async () => {
  const text = await haproxyConfig({ root, masters: [], bind: '*:6443' });
  assert.deepEqual(servers(text), ['10.0.0.5:8443', '10.0.0.6:8443', '10.0.0.7:8443']);
});

it('generates a file that HAProxy accepts', async (t) => {
  if (!(await run('haproxy', ['-v']).catch(() => undefined))) return t.skip('haproxy is not installed');
  const file = join(root, 'haproxy.cfg');
  await writeFile(file, await haproxyConfig({ root, masters: ['[fd00::5]:8443', 'https://10.0.0.5'], bind: '*:6443' }));
  await run('haproxy', ['-c', '-f', file]);
});

it('generates a keepalived configuration with the shared address of the bootstrap file or the flags', async () => {
  const text = await keepalivedConfig({ root, address: undefined, link: undefined });
  assert.match(text, /interface eth0\n/);
  assert.match(text, /virtual_ipaddress \{\n\s+10\.0\.0\.100\/32\n/);
  assert.match(await keepalivedConfig({ root, address: 'fd00::9', link: 'eth1' }), /fd00::9\/128/);
});

it('generates a file that keepalived accepts', async (t) => {
  if (!(await run('keepalived', ['-v']).catch(() => undefined))) return t.skip('keepalived is not installed');
  if (process.getuid?.() !== 0) return t.skip('a link of its own needs root');
  const netns = `he-keepalived-${process.pid}`;
  await run('ip', ['netns', 'add', netns]);
  try {
    // keepalived rejects a loopback link.
    await run('ip', ['-n', netns, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1']);
    const file = join(root, 'keepalived.conf');
    for (const address of ['10.0.0.100', 'fd00::9']) {
      await writeFile(file, await keepalivedConfig({ root, address, link: 'eth0' }));
      await run('ip', ['netns', 'exec', netns, 'keepalived', '-t', '-f', file]);
    }
    await writeFile(file, 'vrrp_instance {\n  interface nothing\n');
    await assert.rejects(run('ip', ['netns', 'exec', netns, 'keepalived', '-t', '-f', file]));
  } finally {
    await run('ip', ['netns', 'delete', netns]);
  }
});

it('rejects invalid servers and addresses of an external balancer', async () => {
  await assert.rejects(haproxyConfig({ root, masters: ['a b'], bind: '*:1' }), /--masters a b: not a server/);
  await assert.rejects(haproxyConfig({ root, masters: [], bind: 'x\nglobal' }), /--bind/);
  await assert.rejects(keepalivedConfig({ root, address: 'x { }', link: 'eth0' }), /--address x \{ \}: not an address/);
  await assert.rejects(keepalivedConfig({ root, address: undefined, link: 'a b' }), /--interface a b: not a link/);
});

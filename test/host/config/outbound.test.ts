import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { effectiveFields } from '../../../src/host/config/effective.ts';
import { outboundOf, sharedOutbound, shareOutbound, shownProxy } from '../../../src/host/config/outbound.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { createAuthority, lifetimeFrom } from '../../../src/pki/certificate.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'outbound-'));
  await mkdir(join(root, 'etc/origin'), { recursive: true });
});
after(() => rm(root, { recursive: true }));

async function settingsWith(proxy: string) {
  const lines = ['apiVersion: hyperedge.dev/v1', 'kind: Bootstrap', 'masters: [https://10.9.8.7:8443]', proxy];
  await writeFile(join(root, 'etc/origin/bootstrap.yaml'), lines.join('\n'), { mode: 0o600 });
  return loadSettings({ root });
}

test('proxies of the bootstrap file replace the variables of the unit; addresses of the cluster bypass the proxies', async () => {
  const env = { HTTP_PROXY: 'http://env.lab:3128', HTTPS_PROXY: 'http://env.lab:3128', NO_PROXY: 'env.lab' };
  const settings = await settingsWith('proxy: {httpsProxy: "http://user:secret@file.lab:3128", noProxy: [.lab]}');
  const found = await outboundOf(settings, env);
  assert.equal(found.httpProxy, 'http://env.lab:3128');
  assert.equal(found.httpsProxy, 'http://user:secret@file.lab:3128');
  for (const entry of ['.lab', '127.0.0.0/8', '.svc', '.cluster.local', '172.30.0.0/16', '10.9.8.7'])
    assert.ok(found.noProxy.includes(entry), entry);
  assert.ok(!found.noProxy.includes('env.lab'));
});

test('passwords of proxies are not shown', async () => {
  const settings = await settingsWith('proxy: {httpsProxy: "http://user:secret@file.lab:3128"}');
  const shown = JSON.stringify([effectiveFields(settings, undefined), shownProxy(await outboundOf(settings, {}))]);
  assert.match(shown, /file\.lab:3128/);
  assert.doesNotMatch(shown, /secret/);
});

test('invalid proxy settings are rejected with field and fix', async () => {
  await assert.rejects(settingsWith('proxy: {httpProxy: "proxy.lab:3128"}'), /proxy.httpProxy.*such as http:\/\/proxy/);
  await assert.rejects(settingsWith('proxy: {httpProxy: "http://proxy.lab/path"}'), /proxy.httpProxy/);
  await assert.rejects(settingsWith('proxy: {noProxy: ["a b"]}'), /proxy.noProxy/);
  const settings = await settingsWith('proxy: {}');
  await assert.rejects(outboundOf(settings, { HTTPS_PROXY: 'socks5://proxy.lab' }), /^CodedError: HTTPS_PROXY: give/);
  const file = join(root, 'empty.pem');
  await writeFile(file, 'nothing');
  const trusting = await settingsWith(`proxy: {trustedCA: ${file}}`);
  await assert.rejects(outboundOf(trusting, {}), /proxy.trustedCA: .*empty.pem has no certificate/);
});

test('the API server reads the proxy settings from a private file, which is deleted with the settings', async () => {
  const { certPem } = await createAuthority('private', lifetimeFrom(Date.now(), 1));
  const file = join(root, 'ca.pem');
  await writeFile(file, certPem);
  const settings = await settingsWith(`proxy: {httpsProxy: "http://file.lab:3128", trustedCA: ${file}}`);
  const outbound = await outboundOf(settings, {});
  await shareOutbound(settings, outbound);
  assert.deepEqual(await sharedOutbound(settings.paths.masterConfig), outbound);
  await shareOutbound(settings, { noProxy: [] });
  assert.deepEqual(await sharedOutbound(settings.paths.masterConfig), { noProxy: [] });
});

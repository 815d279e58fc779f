/** The child process that makes the checks for the kubelet. Node scripts stand in for this program. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostDoctorOf } from '../../../src/host/doctor/child.ts';

const doctorOf = (script: string) => hostDoctorOf([process.execPath, '-e', script, '--'], '/root-of-test');
const running = new AbortController().signal;

suite('host checks in a child process', () => {
  test('host checks in a child process return the report of hyperedge doctor for this root, also with problems', async () => {
    for (const code of [0, 1, 3]) {
      const script = `console.log(JSON.stringify({ args: process.argv.slice(1) })); process.exitCode = ${code}`;
      const report: unknown = JSON.parse(await doctorOf(script).report(running));
      assert.deepEqual(report, { args: ['doctor', '-o', 'json', '--root', '/root-of-test'] });
    }
  });

  test('host checks in a child process contain no credentials from messages', async () => {
    const findings = [
      { evidence: 'proxy http://user:hunter2-hunter2@proxy.lab:3128 refuses' },
      { evidence: 'Authorization: Bearer abcdef0123456789abcdef' },
      { evidence: '-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----' },
    ];
    const text = await doctorOf(`console.log(${JSON.stringify(JSON.stringify({ findings }))})`).report(running);
    for (const secret of ['hunter2', 'abcdef0123456789', 'MIIBVgIBADANBgkqhkiG9w0BAQEFAASC'])
      assert.equal(text.includes(secret), false, text);
    assert.match(text, /proxy\.lab:3128 refuses/);
  });

  test('host checks in a child process fail with the error of the child, without a report, or with too much output', async () => {
    await assert.rejects(doctorOf('console.error("no root"); process.exitCode = 2').report(running), /no root/);
    // Two writes divide a character.
    const divided = `const bytes = Buffer.from('нет корня');
      process.stderr.write(bytes.subarray(0, 8));
      setTimeout(() => process.stderr.write(bytes.subarray(8)), 100);
      process.exitCode = 2`;
    await assert.rejects(doctorOf(divided).report(running), { message: 'нет корня' });
    await assert.rejects(doctorOf('console.log("text")').report(running), /not JSON/);
    await assert.rejects(
      doctorOf('setInterval(() => console.log("x".repeat(1 << 20)), 1)').report(running),
      /bytes of output/,
    );
    await assert.rejects(hostDoctorOf(['/no/such/program'], '/').report(running), /ENOENT/);
  });

  test('an abort of host checks kills the child process and its children', { timeout: 30_000 }, async (context) => {
    const directory = await mkdtemp(join(tmpdir(), 'doctor-child-'));
    context.after(() => rm(directory, { recursive: true }));
    const file = join(directory, 'pid');
    const aborter = new AbortController();
    const script = `
      const child = require('node:child_process').spawn('sleep', ['1000']);
      require('node:fs').writeFileSync(${JSON.stringify(file)}, String(child.pid));
      setInterval(() => {}, 1000)`;
    const report = doctorOf(script).report(aborter.signal);
    let pid = '';
    for (let turn = 0; turn < 100 && pid === ''; turn++) {
      await sleep(50);
      pid = await readFile(file, 'utf8').catch(() => '');
    }
    assert.notEqual(pid, '');
    aborter.abort();
    await assert.rejects(report, /stopped/);
    const isOver = async (): Promise<boolean> =>
      /^$|\) Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''));
    for (let turn = 0; turn < 40 && !(await isOver()); turn++) await sleep(50);
    assert.ok(await isOver(), 'the probe has ended');
  });
});

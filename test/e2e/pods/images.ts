/** Images in the formats of common builders, imported by command and run. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { busyboxLayer, dockerArchive, sha256, tarBytes } from '../../conformance/busybox-image.ts';
import { attributedFile, END_OF_ARCHIVE, ociArchive, ociImage } from '../../runtime/images/archives.ts';
import { assignments, type PodLab, pod, shell } from './lab.ts';

const NET_RAW = 1 << 13;
/** The extended attribute for cap_net_raw=ep, with bytes above 0x7f for capabilities that the kernel lacks. */
const CAPABILITY = Buffer.from('010000020020000000000000000000f8000000ff', 'hex');
const LAYERS = 127;
const IMAGE = 'lab.local/built:1';

export function imageTests(lab: () => PodLab): void {
  test('runs an imported image with many layers and file capabilities', { timeout: 180_000 }, async () => {
    const { appliance, scratch } = lab();
    const capable = attributedFile('bin/busybox-capable', await readFile('/bin/busybox'), {
      'security.capability': CAPABILITY,
    });
    const small = Array.from({ length: LAYERS - 3 }, (_, index) =>
      tarBytes([{ header: { name: `layer${index}` }, body: `${index}` }]),
    );
    const layers = [
      await busyboxLayer(),
      Buffer.concat([capable, END_OF_ARCHIVE]),
      ...(await Promise.all(small)),
      await tarBytes([
        { header: { name: '/kaniko/tool', mode: 0o755 }, body: 'absolute' },
        { header: { name: '/kaniko/again', linkname: '/kaniko/tool', type: 'link' } },
        { header: { name: 'links', type: 'symlink', linkname: '/kaniko' } },
        { header: { name: 'links/busybox', linkname: '/bin/busybox', type: 'link' } },
      ]),
    ];
    const archive = join(scratch, 'built.tar');
    await writeFile(archive, await dockerArchive({ tags: [IMAGE], layers }));
    const image = (...args: string[]) => appliance.hyperedge(['image', ...args, '--root', appliance.root]);
    const imported = await image('import', archive);
    assert.equal(imported.code, 0, imported.stderr);
    assert.equal((await image('verify', IMAGE)).code, 0);
    const script = `echo "again=$(cat /kaniko/again)"; echo "below=$(/links/busybox echo yes)"; echo "top=$(cat /layer100)"
      echo "effective=$(/bin/busybox-capable grep ^CapEff: /proc/self/status | cut -f2)"`;
    const container = shell(script, { image: IMAGE, securityContext: { runAsUser: 1000 } });
    await lab().apply(pod('built', { restartPolicy: 'Never', containers: [container] }));
    await lab().over('built', 60_000);
    const seen = assignments(await lab().logs('built'));
    assert.deepEqual([seen.get('again'), seen.get('below'), seen.get('top')], ['absolute', 'yes', '100']);
    assert.equal(Number.parseInt(seen.get('effective') ?? '', 16) & NET_RAW, NET_RAW, seen.get('effective'));
  });

  test('rejects an image of another architecture without --platform', { timeout: 60_000 }, async () => {
    const { appliance, scratch } = lab();
    const layer = await tarBytes([{ header: { name: 'a' }, body: 'x' }]);
    const foreign = process.arch === 'x64' ? 'arm64' : 'amd64';
    const archive = join(scratch, 'foreign.tar');
    const image = ociImage([{ bytes: layer, diffId: sha256(layer) }], foreign);
    await writeFile(archive, await ociArchive(image, 'lab.local/foreign:1'));
    const command = ['image', 'import', '--root', appliance.root, archive];
    const refused = await appliance.hyperedge(command);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`the image is for linux/${foreign}, .* --platform linux/${foreign}`));
    assert.equal((await appliance.hyperedge([...command, '--platform', `linux/${foreign}`])).code, 0);
    assert.equal((await appliance.hyperedge([...command, '--platform', 'nowhere'])).code, 1);
  });
}

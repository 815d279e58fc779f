/**
 * The sidecars of upstream's mock CSI driver, built from their Go modules into images under the names that the suite's manifests have. The driver
 * itself runs in `e2e.test`; registration and the proxy to it are programs of `test/upstream/csi`.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { busyboxLayer, type ImageToWrite } from '../../build/docker-archive.ts';

const run = promisify(execFile);

/** Releases near those of the manifests: a module proxy may not have every release. */
const SIDECARS = {
  'csi-provisioner': 'github.com/kubernetes-csi/external-provisioner/v6@v6.4.0',
  'csi-attacher': 'github.com/kubernetes-csi/external-attacher/v4@v4.13.0',
  'csi-resizer': 'github.com/kubernetes-csi/external-resizer/v2@v2.3.0',
  'csi-snapshotter': 'github.com/kubernetes-csi/external-snapshotter/v8@v8.5.0',
} as const;

/** By the name of the image that each takes the place of. */
const OWN = { 'csi-node-driver-registrar': 'registrar', hostpathplugin: 'proxy' } as const;

const environment = () => ({ ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' });

async function build(directory: string, path: string, target: string): Promise<void> {
  console.log(`building ${target}`);
  const args = ['go', 'build', '-p', '2', '-ldflags', '-s -w', '-o', `${target}.new`, path];
  await run('nice', args, { cwd: directory, env: environment(), maxBuffer: 1 << 26 });
  await rename(`${target}.new`, target);
}

/** Builds what is missing below `<home>/csi`; returns the directory of the programs, all linked statically. */
export async function buildSidecars(home: string): Promise<string> {
  const [bin, module] = [join(home, 'csi/bin'), join(home, 'csi/stand-ins')];
  await mkdir(bin, { recursive: true });
  for (const [name, version] of Object.entries(SIDECARS)) {
    const target = join(bin, name);
    if (existsSync(target)) continue;
    const { stdout } = await run('go', ['mod', 'download', '-json', version], { cwd: home, env: environment() });
    const { Dir } = JSON.parse(stdout) as { readonly Dir: string };
    const sources = join(home, 'csi/src', name);
    await rm(sources, { recursive: true, force: true });
    await cp(Dir, sources, { recursive: true });
    await run('chmod', ['-R', 'u+w', sources]);
    await build(sources, `./cmd/${name}`, target);
  }
  for (const name of Object.values(OWN)) {
    if (existsSync(join(bin, name))) continue;
    await mkdir(join(module, name), { recursive: true });
    for (const each of ['go.mod', 'go.sum']) await copyFile(join(home, 'src', each), join(module, each));
    await copyFile(join(import.meta.dirname, 'csi', `${name}.go`), join(module, name, 'main.go'));
    await build(module, `./${name}`, join(bin, name));
  }
  return bin;
}

/** `registry`: of the images, in place of registry.k8s.io/sig-storage. */
export async function sidecarImages(bin: string, sources: string, registry: string): Promise<ImageToWrite[]> {
  const manifests = join(sources, 'test/e2e/testing-manifests/storage-csi');
  const tags = new Set<string>();
  for (const name of await readdir(manifests, { recursive: true })) {
    if (!name.endsWith('.yaml')) continue;
    const text = await readFile(join(manifests, name), 'utf8');
    for (const [, tag] of text.matchAll(/image: registry\.k8s\.io\/sig-storage\/(\S+)/g)) tags.add(tag ?? '');
  }
  const base = await busyboxLayer();
  const images: ImageToWrite[] = [];
  for (const tag of tags) {
    const name = tag.slice(0, tag.indexOf(':'));
    const program = Object.hasOwn(OWN, name) ? OWN[name as keyof typeof OWN] : name;
    if (!existsSync(join(bin, program))) continue;
    const content = await readFile(join(bin, program));
    images.push({
      tag: `${registry}/${tag}`,
      layers: [base, [{ name: program, type: 'file', mode: 0o755, content }]],
      config: { Entrypoint: [`/${program}`] },
    });
  }
  return images;
}

/**
 * Builds the sidecars of upstream's mock CSI driver from Go modules, as images with the names in the suite's manifests.
 * The driver itself runs in `e2e.test`; registration and the proxy to it are programs of `test/upstream/csi`.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { busyboxLayer, type ImageToWrite } from '../../../build/docker-archive.ts';

const run = promisify(execFile);

/**
 * Releases close to those in the manifests, because a module proxy may lack some. The dependencies of the first one are
 * used for all.
 */
const SIDECARS = {
  'csi-provisioner': ['github.com/kubernetes-csi/external-provisioner/v6', 'v6.4.0'],
  'csi-attacher': ['github.com/kubernetes-csi/external-attacher/v4', 'v4.12.0'],
  'csi-resizer': ['github.com/kubernetes-csi/external-resizer/v2', 'v2.2.0'],
  'csi-snapshotter': ['github.com/kubernetes-csi/external-snapshotter/v8', 'v8.5.0'],
} as const;

/** Replacement programs by image name, for images whose program was not given. */
const OWN = { 'csi-node-driver-registrar': 'registrar', hostpathplugin: 'proxy' } as const;

const environment = () => ({ ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' });

async function build(directory: string, path: string, target: string): Promise<void> {
  console.log(`building ${target}`);
  const args = ['go', 'build', '-p', '2', '-ldflags', '-s -w', '-o', `${target}.new`, path];
  await run('nice', args, { cwd: directory, env: environment(), maxBuffer: 1 << 26 });
  await rename(`${target}.new`, target);
}

/** Writes a module that requires all sidecars, with the dependencies and replacements of the first one. */
async function writeModule(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const [path, version] = SIDECARS['csi-provisioner'];
  const { stdout } = await run('go', ['mod', 'download', '-json', `${path}@${version}`], { env: environment() });
  const { GoMod, Dir } = JSON.parse(stdout) as { readonly GoMod: string; readonly Dir: string };
  const given = (await readFile(GoMod, 'utf8')).replace(/^module .*$/m, '');
  const required = Object.values(SIDECARS).map((each) => `require ${each.join(' ')}`);
  await writeFile(join(directory, 'go.mod'), ['module sidecars', given, ...required, ''].join('\n'));
  await writeFile(join(directory, 'go.sum'), await readFile(join(Dir, 'go.sum')));
}

/**
 * Builds missing programs below `<home>/csi`, all statically linked, and returns their directory. `hostpath` is
 * hostpathplugin of kubernetes-csi/csi-driver-host-path, for cases whose driver does not run in the suite; the module
 * proxy does not have it.
 */
export async function buildSidecars(home: string, hostpath: string | undefined): Promise<string> {
  const at = (name: string): string => join(home, 'csi', name);
  const [bin, module, standIns] = [at('bin'), at('module'), at('stand-ins')];
  await mkdir(bin, { recursive: true });
  if (hostpath !== undefined) await copyFile(hostpath, join(bin, 'hostpathplugin'));
  if (!existsSync(join(module, 'go.mod'))) await writeModule(module);
  for (const [name, [path]] of Object.entries(SIDECARS)) {
    const target = join(bin, name);
    if (!existsSync(target)) await build(module, `${path}/cmd/${name}`, target);
  }
  for (const name of Object.values(OWN)) {
    if (existsSync(join(bin, name))) continue;
    await mkdir(join(standIns, name), { recursive: true });
    for (const each of ['go.mod', 'go.sum']) await copyFile(join(home, 'src', each), join(standIns, each));
    await copyFile(join(import.meta.dirname, '..', 'csi', `${name}.go`), join(standIns, name, 'main.go'));
    await build(standIns, `./${name}`, join(bin, name));
  }
  return bin;
}

/** `registry` replaces registry.k8s.io/sig-storage in image names. */
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
    const isStandIn = Object.hasOwn(OWN, name) && !existsSync(join(bin, name));
    const program = isStandIn ? OWN[name as keyof typeof OWN] : name;
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

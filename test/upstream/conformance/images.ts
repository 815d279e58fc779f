/**
 * Builds the images of upstream's end-to-end suite on this host: agnhost and sample-apiserver from upstream's sources,
 * the others from busybox and Debian's programs under the names that the suite uses. `/etc/os-release` names Alpine,
 * because the suite checks it.
 */
import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  busyboxLayer,
  directory,
  type Entry,
  type ImageToWrite,
  writeDockerArchive,
} from '../../../build/docker-archive.ts';
import { sidecarImages } from './csi.ts';

const run = promisify(execFile);
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const file = (name: string, content: Buffer | string, mode = 0o644): Entry => ({
  name,
  type: 'file',
  mode,
  content: Buffer.from(content),
});

/** Adds entries with their parent directories. Existing entries are skipped. */
class LayerBuilder {
  readonly entries: Entry[] = [];
  readonly #names = new Set<string>();

  add(entry: Entry): this {
    if (this.#names.has(entry.name)) return this;
    const parent = dirname(entry.name);
    if (parent !== '.') this.add(directory(parent));
    this.#names.add(entry.name);
    this.entries.push(entry);
    return this;
  }

  /** Adds a program of this host with its libraries. */
  async program(path: string, target: string, mode = 0o755): Promise<this> {
    this.add(file(target, await readFile(await realpath(path)), mode));
    const { stdout } = await run('ldd', [path]).catch(() => ({ stdout: '' }));
    for (const [, library] of stdout.matchAll(/(\/\S+) \(0x/g))
      if (library !== undefined) this.add(file(library.slice(1), await readFile(await realpath(library)), 0o755));
    return this;
  }
}

/** An image with a web server for a directory on port 80, which replaces small web servers of the suite. */
function webServer(tag: string, base: readonly Entry[], root: string, pages: readonly Entry[]): ImageToWrite {
  const builder = new LayerBuilder().add(directory(root.slice(1)));
  for (const page of pages) builder.add(page);
  return {
    tag,
    layers: [base, builder.entries],
    // The first process of a container ignores signals that it does not handle.
    config: {
      Env: [PATH],
      Cmd: ['sh', '-c', `trap 'exit 0' TERM; httpd -f -p 80 -h ${root} & wait`],
      ExposedPorts: { '80/tcp': {} },
    },
  };
}

export interface UpstreamPlaces {
  /** Directory with static agnhost and sample-apiserver. */
  readonly programs: string;
  /** Source tree of Kubernetes. */
  readonly sources: string;
  /** A static busybox of version 1.36 or later for the busybox image. If undefined, bash is its shell. */
  readonly busybox: string | undefined;
  /** Directory with the sidecars of the mock CSI driver. If undefined, their images are not built. */
  readonly sidecars: string | undefined;
}

/** Port of the registry without TLS on each host's loopback address. */
export const REGISTRY_PORT = 5117;
export const REGISTRY = `127.0.0.1:${REGISTRY_PORT}`;
const E2E = `${REGISTRY}/e2e-test-images`;
const SIG_STORAGE = `${REGISTRY}/sig-storage`;
/** Tag in the mock driver's manifest, which differs from the suite's own. */
const MANIFEST_BUSYBOX = 'busybox:1.36.1-1';

/** Content of `KUBE_TEST_REPO_LIST`, with which the suite uses these images. */
export const REPOSITORIES = `promoterE2eRegistry: ${E2E}\ngcRegistry: ${REGISTRY}\ngcEtcdRegistry: ${REGISTRY}\nsigStorageRegistry: ${SIG_STORAGE}\n`;

/** Returns the image versions of the suite, by the name of the field in `test/utils/image/manifest.go`. */
async function versions(sources: string): Promise<(field: string) => string> {
  const text = await readFile(join(sources, 'test/utils/image/manifest.go'), 'utf8');
  return (field) => {
    const [, name, version] = new RegExp(`configs\\[${field}\\] = Config\\{[^"]*"([^"]+)", "([^"]+)"`).exec(text) ?? [];
    if (name === undefined) throw new Error(`test/utils/image/manifest.go names no image ${field}`);
    return `${name}:${version}`;
  };
}

/** Writes all images to one docker-archive. Throws if a program is missing. */
export async function writeConformanceImages(
  path: string,
  { programs, sources, busybox, sidecars }: UpstreamPlaces,
): Promise<void> {
  const image = await versions(sources);
  const base = await busyboxLayer();
  const porter = join(sources, 'test/images/agnhost/porter');
  const users = new LayerBuilder()
    .add(file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n'))
    .add(file('etc/os-release', 'NAME="Alpine Linux"\nID=alpine\n'))
    .add(file('etc/group', 'root:x:0:\ngroup-defined-in-image:x:50000:user-defined-in-image\n'));
  const agnhost = new LayerBuilder()
    .add(file('agnhost', await readFile(join(programs, 'agnhost')), 0o755))
    .add({ name: 'agnhost-2', type: 'symlink', mode: 0o777, linkname: 'agnhost' })
    .add(file('localhost.crt', await readFile(join(porter, 'localhost.crt'))))
    .add(file('localhost.key', await readFile(join(porter, 'localhost.key'))))
    .add(directory('uploads', 0o777));
  // busybox's shell prefers its own applets to programs in the path, so dash is used.
  const tools = await new LayerBuilder().program('/bin/dash', 'bin/sh');
  for (const each of [
    '/usr/bin/curl',
    '/usr/bin/dig',
    '/usr/bin/nc',
    '/bin/ss',
    '/bin/bash',
    '/usr/bin/ipcs',
    '/usr/bin/getent',
    '/usr/bin/ipcmk',
  ]) {
    const target = await realpath(each);
    await tools.program(target, `usr/local/bin/${basename(each)}`);
  }
  await tools.program('/bin/bash', 'bin/bash');
  const bash = await new LayerBuilder().program('/bin/bash', 'bin/sh');
  const setuid = await new LayerBuilder().program('/usr/bin/id', 'usr/bin/id', 0o4755);
  const etcd = await new LayerBuilder().program('/usr/bin/etcd', 'usr/local/bin/etcd');
  const apiServer = new LayerBuilder().add(
    file('sample-apiserver', await readFile(join(programs, 'sample-apiserver')), 0o755),
  );
  const agnhostLayers = [base, agnhost.entries, tools.entries, users.entries];
  const agnhostConfig = { Env: [PATH], Entrypoint: ['/agnhost'], Cmd: ['pause'] };
  const animal = (field: string): ImageToWrite => {
    const name = field.toLowerCase();
    return {
      tag: `${E2E}/${image(field)}`,
      layers: [...agnhostLayers, [file('data.json', `{"image": "${name}.jpg"}\n`), file(`${name}.jpg`, name)]],
      config: { ...agnhostConfig, Cmd: ['test-webserver'] },
    };
  };
  const shell = { Env: [PATH], Cmd: ['sh'] };
  const busyboxLayers = busybox === undefined ? [base, bash.entries] : [await busyboxLayer(busybox)];
  const page = '<html><body><h1>Welcome to nginx!</h1></body></html>\n';
  await writeDockerArchive(path, [
    ...['Agnhost', 'AgnhostPrev'].map((field) => ({
      tag: `${E2E}/${image(field)}`,
      layers: agnhostLayers,
      config: agnhostConfig,
    })),
    // bash, like busybox from 1.36 on, passes on variables with names that are invalid in a shell; Debian 12's busybox
    // drops them.
    ...new Set([image('BusyBox'), MANIFEST_BUSYBOX])
      .values()
      .map((tag) => ({ tag: `${E2E}/${tag}`, layers: busyboxLayers, config: shell })),
    { tag: `${REGISTRY}/${image('Pause')}`, layers: agnhostLayers, config: agnhostConfig },
    { tag: `${E2E}/${image('NonRoot')}`, layers: [base], config: { ...shell, User: '1234' } },
    {
      tag: `${E2E}/${image('Nonewprivs')}`,
      layers: [base, setuid.entries],
      // The setuid program prints the user ID that it actually got.
      config: { ...shell, User: '1000', Entrypoint: ['sh', '-c', 'echo "Effective uid: $(/usr/bin/id -u)"'], Cmd: [] },
    },
    ...['GlibcDnsTesting', 'IpcUtils'].map((field) => ({
      tag: `${E2E}/${image(field)}`,
      layers: agnhostLayers,
      config: shell,
    })),
    animal('Nautilus'),
    animal('Kitten'),
    ...['Nginx', 'NginxNew'].map((field) =>
      webServer(`${E2E}/${image(field)}`, base, '/usr/share/nginx/html', [
        file('usr/share/nginx/html/index.html', page),
      ]),
    ),
    { tag: `${REGISTRY}/${image('Etcd')}`, layers: [base, etcd.entries], config: shell },
    {
      tag: `${E2E}/${image('APIServer')}`,
      layers: [base, apiServer.entries],
      config: { Env: [PATH], Entrypoint: ['/sample-apiserver'] },
    },
    ...(sidecars === undefined ? [] : await sidecarImages(sidecars, sources, SIG_STORAGE)),
  ]);
}

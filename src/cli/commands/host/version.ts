import { compareReleases } from '../../../base/versions/release-version.ts';
import { KUBERNETES_VERSION, PRODUCT_VERSION } from '../../../base/versions/version.ts';
import { type Command, type FlagValues, type Output, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const versionCommand: Command = {
  name: 'version',
  usage: '[-o json|yaml] [--licenses | --check BUNDLE [--key KEY]]',
  summary: 'show the versions of this executable, of Kubernetes and of Node',
  flags: {
    licenses: { type: 'boolean', help: 'print the notices of third-party software in this executable' },
    check: { type: 'string', value: 'BUNDLE', help: 'verify a bundle and compare; exit code 1 for another executable' },
    key: { type: 'string', value: 'FILE', help: 'with --check: public key that must have signed the bundle' },
    output: OUTPUT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['Versions', 'version'],
    ['Compare with a release', 'version --check release.bundle'],
  ],
  run: async ({ flags, out }) => {
    if (flags['licenses'] === true) {
      const { thirdPartyNotices } = await import('../../../host/process/assets.ts');
      out.stdout(thirdPartyNotices());
      return 0;
    }
    const bundle = stringFlag(flags, 'check');
    if (bundle !== undefined) return checkBundle(bundle, flags, out);
    const versions = {
      hyperedge: PRODUCT_VERSION,
      kubernetes: KUBERNETES_VERSION.gitVersion,
      node: process.version,
      platform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`,
    };
    const document = await printDocument(flags, versions);
    out.stdout(
      document ??
        `hyperedge ${versions.hyperedge} (Kubernetes ${versions.kubernetes}, Node ${versions.node}, ${versions.platform})\n`,
    );
    return 0;
  },
};

function relationOf(order: number, isSame: boolean): string {
  if (order !== 0) return order > 0 ? 'newer' : 'older';
  return isSame ? 'same' : 'another build of the same version';
}

async function checkBundle(bundle: string, flags: FlagValues, out: Output): Promise<number> {
  const key = stringFlag(flags, 'key');
  const { compareBundle } = await import('../../../host/openshift/release-bundles.ts');
  const { version, architectures, isSame } = await compareBundle(bundle, process.execPath, { key, root: undefined });
  const relation = relationOf(compareReleases(version, PRODUCT_VERSION), isSame);
  const document = await printDocument(flags, {
    executable: PRODUCT_VERSION,
    bundle: { version, architectures },
    relation,
    isSame,
  });
  const text = `executable ${PRODUCT_VERSION}\nbundle     ${version} (${architectures.join(', ')}): ${relation}\n`;
  out.stdout(document ?? text);
  return isSame ? 0 : 1;
}

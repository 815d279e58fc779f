/**
 * operators.coreos.com/v1 and v2, packages.operators.coreos.com/v1 and olm.hyperedge.dev/v1. Source:
 * operator-framework/api pkg/operators/{v1,v2} and operator-lifecycle-manager pkg/package-server/apis/operators/v1.
 */
import { type DeclaredField, type DeclaredType, declarePackage } from '../openshift/declare.ts';
import { CATALOG_PACKAGE_ROOT, OLM_ROOT, PACKAGE_SERVER_ROOT } from './roots.ts';

const CONDITIONS: DeclaredField = ['[]#meta.Condition', 'Aspects of the state.'];

/**
 * Types of OperatorCondition, for v1 and v2. Upstream's v1 lacks conditions in the spec; here both versions have them.
 */
const operatorCondition = (): Readonly<Record<string, DeclaredType>> => ({
  OperatorCondition: {
    isKind: true,
    about: 'An operator condition is what an operator reports to the lifecycle manager, such as Upgradeable.',
    fields: {
      spec: ['#OperatorConditionSpec', 'Conditions that the operator reports and that an administrator overrides.'],
      status: ['#OperatorConditionStatus', 'Conditions in effect.'],
    },
  },
  OperatorConditionSpec: {
    about: 'OperatorConditionSpec is what the operator reports.',
    fields: {
      conditions: ['[]#meta.Condition', 'Conditions that the operator reports.'],
      serviceAccounts: ['[]string', 'Service accounts that may report.'],
      deployments: ['[]string', 'Deployments that may report.'],
      overrides: ['[]#meta.Condition', 'Conditions that hold instead of those that the operator reports.'],
    },
  },
  OperatorConditionStatus: {
    about: 'OperatorConditionStatus is the state of the operator.',
    fields: { conditions: CONDITIONS },
  },
});

const v1 = declarePackage(
  'v1',
  {
    OperatorGroup: {
      isKind: true,
      about: 'An operator group selects the namespaces that the operators of its namespace watch.',
      fields: {
        spec: ['#OperatorGroupSpec', 'The namespaces.'],
        status: ['#OperatorGroupStatus', 'The namespaces that were found.'],
      },
    },
    OperatorGroupSpec: {
      about: 'OperatorGroupSpec selects namespaces; without any selection all are meant.',
      fields: {
        selector: ['#meta.LabelSelector', 'Selects namespaces by label; not used beside targetNamespaces.'],
        targetNamespaces: ['[]string', 'The namespaces.'],
        serviceAccountName: ['string', 'Service account with whose permissions operators are installed.'],
        staticProvidedAPIs: ['boolean', 'The annotation olm.providedAPIs is not kept up to date.'],
        upgradeStrategy: ['string', 'Default or TechPreviewUnsafeFailForward.'],
      },
    },
    OperatorGroupStatus: {
      about: 'OperatorGroupStatus is the set of namespaces.',
      fields: {
        namespaces: ['[]string', 'The namespaces; one empty name for all.'],
        serviceAccountRef: ['#core.ObjectReference', 'The service account.'],
        lastUpdated: ['date-time', 'When the status changed.'],
        conditions: CONDITIONS,
      },
    },
    Operator: {
      isKind: true,
      about: 'An operator shows what belongs to one installed operator.',
      fields: {
        spec: ['any', 'Empty.'],
        status: ['#OperatorStatus', 'Objects of the operator.'],
      },
    },
    OperatorStatus: {
      about: 'OperatorStatus is what belongs to the operator.',
      fields: { components: ['#Components', 'Objects of the operator.'] },
    },
    Components: {
      about: 'Components are objects with the label of the operator.',
      fields: {
        labelSelector: ['#meta.LabelSelector', 'Selects them.'],
        refs: ['[]#RichReference', 'The objects.'],
      },
    },
    RichReference: {
      about: 'RichReference is an object with its conditions.',
      fields: {
        apiVersion: ['string', 'API version.'],
        kind: ['string', 'Kind.'],
        name: ['string', 'Name.'],
        namespace: ['string', 'Namespace.'],
        uid: ['string', 'UID.'],
        resourceVersion: ['string', 'Version that was seen.'],
        fieldPath: ['string', 'Part of the object.'],
        conditions: ['[]any', 'Conditions of the object.'],
      },
    },
    ...operatorCondition(),
  },
  OLM_ROOT,
);

const v2 = declarePackage('v2', operatorCondition(), OLM_ROOT);

const packageServer = declarePackage(
  'v1',
  {
    PackageManifest: {
      isKind: true,
      about: 'A package manifest is one package of a catalog that the namespace can install from.',
      fields: {
        spec: ['any', 'Empty.'],
        status: ['#PackageManifestStatus', 'The package.'],
      },
    },
    PackageManifestStatus: {
      about: 'PackageManifestStatus is the package as its catalog has it.',
      fields: {
        catalogSource: ['!string', 'Name of the catalog source.'],
        catalogSourceDisplayName: ['!string', 'Name of the catalog for people.'],
        catalogSourcePublisher: ['!string', 'Publisher of the catalog.'],
        catalogSourceNamespace: ['!string', 'Namespace of the catalog source.'],
        provider: ['#AppLink', 'Provider of the operator.'],
        packageName: ['!string', 'Name of the package.'],
        channels: ['![]#PackageChannel', 'Channels.'],
        defaultChannel: ['!string', 'The channel that is used where none is named.'],
      },
    },
    AppLink: {
      about: 'AppLink is a name with a URL.',
      fields: { name: ['string', 'Name.'], url: ['string', 'URL.'] },
    },
    PackageChannel: {
      about: 'PackageChannel is one channel of a package.',
      fields: {
        name: ['!string', 'Name.'],
        currentCSV: ['!string', 'The newest version.'],
        currentCSVDesc: ['#CSVDescription', 'Description of the version.'],
        entries: ['[]#ChannelEntry', 'Versions of the channel, newest first.'],
      },
    },
    ChannelEntry: {
      about: 'ChannelEntry is one version of a channel.',
      fields: { name: ['!string', 'Name.'], version: ['string', 'Semantic version.'] },
    },
    CSVDescription: {
      about: 'CSVDescription is the description of a version.',
      fields: {
        displayName: ['string', 'Name for people.'],
        version: ['string', 'Semantic version.'],
        provider: ['#AppLink', 'Provider of the operator.'],
        annotations: ['{}string', 'Annotations of the version.'],
        keywords: ['[]string', 'Words by which it is found.'],
        links: ['[]#AppLink', 'Links to further information.'],
        maintainers: ['[]any', 'Maintainers of the operator.'],
        maturity: ['string', 'alpha, beta, stable …'],
        description: ['string', 'Description of the operator in Markdown.'],
        installModes: ['[]any', 'Sets of namespaces that the operator can watch.'],
        customresourcedefinitions: ['any', 'Custom resources that it owns and requires.'],
        apiservicedefinitions: ['any', 'Aggregated APIs that it owns and requires.'],
        nativeAPIs: ['[]any', 'Kinds of the cluster that it requires.'],
        minKubeVersion: ['string', 'Lowest version of Kubernetes that it runs on.'],
        relatedImages: ['[]string', 'Images that it uses.'],
      },
    },
  },
  PACKAGE_SERVER_ROOT,
);

const catalogPackage = declarePackage(
  'v1',
  {
    CatalogPackage: {
      isKind: true,
      about:
        'A catalog package is what the controllers have read of one package of a catalog; users see PackageManifests.',
      fields: {
        labels: ['{}string', 'Labels of the package manifest.'],
        priority: ['int32', 'Priority of the catalog.'],
        manifest: ['any', 'Status of the package manifest.'],
      },
    },
  },
  CATALOG_PACKAGE_ROOT,
);

export const operatorPackages = [v1, v2, packageServer, catalogPackage];

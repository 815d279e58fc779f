/** operators.coreos.com/v1alpha1. Source: operator-framework/api pkg/operators/v1alpha1, field names and meaning. */
import { declarePackage } from '../openshift/declare.ts';
import { clusterServiceVersionTypes } from './cluster-service-version.ts';
import { OLM_ROOT } from './roots.ts';

export const olmPackage = declarePackage(
  'v1alpha1',
  {
    CatalogSource: {
      isKind: true,
      about: 'A catalog source is a catalog of operators: packages with channels of versions.',
      fields: {
        spec: ['!#CatalogSourceSpec', 'Location of the catalog.'],
        status: ['#CatalogSourceStatus', 'Whether it has been read.'],
      },
    },
    CatalogSourceSpec: {
      about: 'CatalogSourceSpec names the place of the catalog.',
      fields: {
        sourceType: ['!string', 'grpc (an image or a directory), configmap or internal.'],
        priority: ['int32', 'Catalogs with a higher number are preferred; default 0.'],
        configMap: ['string', 'ConfigMap of the same namespace that holds the catalog.'],
        address: ['string', 'Directory of the masters, as file:///var/lib/origin/catalogs/NAME.'],
        image: ['string', 'Image in the store of the masters whose /configs is the catalog.'],
        grpcPodConfig: ['any', 'Accepted and without effect: catalogs have no pods.'],
        updateStrategy: ['#UpdateStrategy', 'Interval at which the catalog is read.'],
        secrets: ['[]string', 'Accepted and without effect: images are read from the store of the host.'],
        displayName: ['string', 'Name for people.'],
        description: ['string', 'Content of the catalog.'],
        publisher: ['string', 'Publisher of the catalog.'],
        icon: ['#Icon', 'Picture of the catalog.'],
        runAsRoot: ['boolean', 'Accepted and without effect.'],
      },
    },
    UpdateStrategy: {
      about: 'UpdateStrategy is how a catalog is kept up to date.',
      fields: { registryPoll: ['#RegistryPoll', 'Reading at an interval.'] },
    },
    RegistryPoll: {
      about: 'RegistryPoll is the interval at which a catalog is read.',
      fields: { interval: ['string', 'A duration such as 30m.'] },
    },
    CatalogSourceStatus: {
      about: 'CatalogSourceStatus is what the last attempt to read the catalog found.',
      fields: {
        message: ['string', 'Error message.'],
        reason: ['string', 'SpecInvalidError, ConfigMapError or RegistryServerError.'],
        configMapReference: ['#ConfigMapResourceReference', 'The ConfigMap that was read.'],
        registryService: ['any', 'Unused: catalogs have no service.'],
        connectionState: ['#GRPCConnectionState', 'Whether the catalog can be read.'],
        latestImageRegistryPoll: ['date-time', 'Time of the last check of the image.'],
        conditions: ['[]#meta.Condition', 'Aspects of the state.'],
      },
    },
    ConfigMapResourceReference: {
      about: 'ConfigMapResourceReference is the ConfigMap of a catalog.',
      fields: {
        name: ['!string', 'Name of the config map.'],
        namespace: ['!string', 'Namespace of the config map.'],
        uid: ['string', 'UID of the config map.'],
        resourceVersion: ['string', 'The version that was read.'],
        lastUpdateTime: ['date-time', 'When it was read.'],
      },
    },
    GRPCConnectionState: {
      about: 'GRPCConnectionState is the state of the connection to the catalog.',
      fields: {
        address: ['string', 'Location of the catalog.'],
        lastObservedState: ['!string', 'READY, CONNECTING or TRANSIENT_FAILURE.'],
        lastConnect: ['date-time', 'When it was read last.'],
      },
    },
    Subscription: {
      isKind: true,
      about: 'A subscription keeps an operator installed and up to date with a channel of a catalog.',
      fields: {
        spec: ['!#SubscriptionSpec', 'Package, channel and catalog.'],
        status: ['#SubscriptionStatus', 'Installed version and its state.'],
      },
    },
    SubscriptionSpec: {
      about: 'SubscriptionSpec names an operator and how it is updated.',
      fields: {
        source: ['!string', 'Name of the catalog source.'],
        sourceNamespace: ['!string', 'Namespace of the catalog source.'],
        name: ['!string', 'Name of the package.'],
        channel: ['string', 'Channel; default: the default channel of the package.'],
        startingCSV: ['string', 'The version to install first; default: the newest of the channel.'],
        installPlanApproval: ['string', 'Automatic (the default) or Manual.'],
        config: ['#SubscriptionConfig', 'Settings that are added to the deployments of the operator.'],
      },
    },
    SubscriptionConfig: {
      about: 'SubscriptionConfig is applied to every deployment of the operator.',
      fields: {
        selector: ['#meta.LabelSelector', 'Accepted and without effect, as upstream.'],
        nodeSelector: ['{}string', 'Node selector of the pods.'],
        tolerations: ['[]#core.Toleration', 'Tolerations that the pods get in addition.'],
        resources: ['#core.ResourceRequirements', 'Resources of every container.'],
        envFrom: ['[]#core.EnvFromSource', 'Sources of environment variables of every container.'],
        env: ['[]#core.EnvVar', 'Environment variables of every container.'],
        volumes: ['[]#core.Volume', 'Volumes of the pods.'],
        volumeMounts: ['[]#core.VolumeMount', 'Mounts of every container.'],
        affinity: ['#core.Affinity', 'Affinity of the pods.'],
        annotations: ['{}string', 'Annotations of deployments and pods.'],
      },
    },
    SubscriptionStatus: {
      about: 'SubscriptionStatus is what the subscription has come to.',
      fields: {
        currentCSV: ['string', 'The version that is installed or being installed.'],
        installedCSV: ['string', 'The version that is installed.'],
        installplan: ['#InstallPlanReference', 'The install plan; in the form of earlier releases.'],
        state: ['string', 'UpgradeAvailable, UpgradePending, AtLatestKnown or UpgradeFailed.'],
        reason: ['string', 'Why it is in this state.'],
        installPlanGeneration: ['int32', 'Generation of the install plan.'],
        installPlanRef: ['#core.ObjectReference', 'The install plan.'],
        catalogHealth: ['[]#SubscriptionCatalogHealth', 'Health of the catalogs that are used.'],
        conditions: ['[]#SubscriptionCondition', 'Aspects of the state.'],
        lastUpdated: ['date-time', 'When the status changed.'],
      },
    },
    InstallPlanReference: {
      about: 'InstallPlanReference is an install plan.',
      fields: {
        apiVersion: ['string', 'Version of the API.'],
        kind: ['string', 'InstallPlan.'],
        name: ['string', 'Name of the install plan.'],
        uuid: ['string', 'UID of the install plan.'],
      },
    },
    SubscriptionCatalogHealth: {
      about: 'SubscriptionCatalogHealth is the health of one catalog.',
      fields: {
        catalogSourceRef: ['#core.ObjectReference', 'The catalog source.'],
        lastUpdated: ['date-time', 'When that changed.'],
        healthy: ['!boolean', 'Whether it can be read.'],
      },
    },
    SubscriptionCondition: {
      about: 'SubscriptionCondition is one aspect of the state.',
      fields: {
        type: ['!string', 'CatalogSourcesUnhealthy, InstallPlanMissing, InstallPlanPending, InstallPlanFailed …'],
        status: ['!string', 'True, False or Unknown.'],
        reason: ['string', 'One word for programs.'],
        message: ['string', 'Text for people.'],
        lastHeartbeatTime: ['date-time', 'Time of the last check.'],
        lastTransitionTime: ['date-time', 'When the status changed last.'],
      },
    },
    InstallPlan: {
      isKind: true,
      about: 'An install plan is the list of objects that install or update operators.',
      fields: {
        spec: ['!#InstallPlanSpec', 'Versions to install, and their approval.'],
        status: ['#InstallPlanStatus', 'The steps and what has become of them.'],
      },
    },
    InstallPlanSpec: {
      about: 'InstallPlanSpec names the versions and their approval.',
      fields: {
        source: ['string', 'Name of the catalog source.'],
        sourceNamespace: ['string', 'Namespace of the catalog source.'],
        clusterServiceVersionNames: ['![]string', 'The versions.'],
        approval: ['!string', 'Automatic or Manual.'],
        approved: ['!boolean', 'Nothing is installed before this is true.'],
        generation: ['int32', 'Counts the plans of a namespace.'],
      },
    },
    InstallPlanStatus: {
      about: 'InstallPlanStatus is the state of the plan.',
      fields: {
        phase: ['string', 'Planning, RequiresApproval, Installing, Complete or Failed.'],
        conditions: ['[]#InstallPlanCondition', 'Resolved and Installed.'],
        catalogSources: ['[]string', 'Catalog sources that the versions are from.'],
        plan: ['[]#Step', 'The objects, in the order in which they are created.'],
        bundleLookups: ['[]#BundleLookup', 'Bundles whose content stands in images.'],
        attenuatedServiceAccountRef: ['#core.ObjectReference', 'The service account that installs.'],
        startTime: ['date-time', 'When the installation began.'],
        message: ['string', 'Text for people.'],
      },
    },
    InstallPlanCondition: {
      about: 'InstallPlanCondition is one aspect of the state.',
      fields: {
        type: ['string', 'Resolved or Installed.'],
        status: ['string', 'True, False or Unknown.'],
        lastUpdateTime: ['date-time', 'Time of the last check.'],
        lastTransitionTime: ['date-time', 'When the status changed last.'],
        reason: ['string', 'InstallCheckFailed, DependenciesConflict or InstallComponentFailed.'],
        message: ['string', 'Text for people.'],
      },
    },
    Step: {
      about: 'Step is one object of a plan.',
      fields: {
        resolving: ['!string', 'The version that the object belongs to.'],
        resource: ['!#StepResource', 'The object.'],
        optional: ['boolean', 'The plan goes on where the kind of the object is not served.'],
        status: ['!string', 'Unknown, NotPresent, Present or Created.'],
      },
    },
    StepResource: {
      about: 'StepResource is an object as the catalog has it.',
      fields: {
        sourceName: ['!string', 'Name of the catalog source.'],
        sourceNamespace: ['!string', 'Namespace of the catalog source.'],
        group: ['!string', 'API group.'],
        version: ['!string', 'API version.'],
        kind: ['!string', 'Kind.'],
        name: ['!string', 'Name.'],
        manifest: ['string', 'The object as JSON, or where the catalog has it.'],
      },
    },
    BundleLookup: {
      about: 'BundleLookup is a bundle whose content stands in an image.',
      fields: {
        path: ['!string', 'The image.'],
        identifier: ['!string', 'Name of the version.'],
        replaces: ['!string', 'The version that it replaces.'],
        catalogSourceRef: ['#core.ObjectReference', 'The catalog source.'],
        conditions: ['[]any', 'Aspects of the state.'],
        properties: ['string', 'Properties as JSON.'],
      },
    },
    ...clusterServiceVersionTypes,
  },
  OLM_ROOT,
);

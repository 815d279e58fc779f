/** ClusterServiceVersion of operators.coreos.com/v1alpha1. Source: operator-framework/api pkg/operators/v1alpha1. */
import type { DeclaredField, DeclaredType } from '../openshift/declare.ts';

const DESCRIPTORS: Readonly<Record<string, DeclaredField>> = {
  statusDescriptors: ['[]any', 'Descriptions of status fields for consoles.'],
  specDescriptors: ['[]any', 'Descriptions of spec fields for consoles.'],
  actionDescriptors: ['[]any', 'Descriptions of actions for consoles.'],
};

export const clusterServiceVersionTypes: Readonly<Record<string, DeclaredType>> = {
  ClusterServiceVersion: {
    isKind: true,
    about: 'A cluster service version is one version of an operator: what it needs, owns and runs.',
    fields: {
      spec: ['!#ClusterServiceVersionSpec', 'The operator.'],
      status: ['#ClusterServiceVersionStatus', 'Progress of the installation.'],
    },
  },
  ClusterServiceVersionSpec: {
    about: 'ClusterServiceVersionSpec is one version of an operator.',
    fields: {
      install: ['!#NamedInstallStrategy', 'Install strategy of the operator.'],
      version: ['string', 'Semantic version.'],
      maturity: ['string', 'alpha, beta, stable …'],
      customresourcedefinitions: ['#CustomResourceDefinitions', 'Custom resources that it owns and requires.'],
      apiservicedefinitions: ['#APIServiceDefinitions', 'Aggregated APIs that it owns and requires.'],
      webhookdefinitions: ['[]#WebhookDescription', 'Admission and conversion webhooks that it serves.'],
      nativeAPIs: ['[]#GroupVersionKind', 'Kinds of the cluster that it requires.'],
      minKubeVersion: ['string', 'Lowest version of Kubernetes that it runs on.'],
      displayName: ['!string', 'Name for people.'],
      description: ['string', 'Description of the operator in Markdown.'],
      keywords: ['[]string', 'Words by which it is found.'],
      maintainers: ['[]#Maintainer', 'Maintainers of the operator.'],
      provider: ['#AppLink', 'Provider of the operator.'],
      links: ['[]#AppLink', 'Links to further information.'],
      icon: ['[]#Icon', 'Pictures.'],
      installModes: ['[]#InstallMode', 'Sets of namespaces that the operator can watch.'],
      replaces: ['string', 'The version that this one replaces.'],
      labels: ['{}string', 'Labels for what belongs to the operator.'],
      annotations: ['{}string', 'Annotations for what belongs to the operator.'],
      selector: ['#meta.LabelSelector', 'Selects what belongs to the operator.'],
      cleanup: ['#CleanupSpec', 'Objects that are deleted with the operator.'],
      skips: ['[]string', 'Versions that this one replaces as well.'],
      relatedImages: ['[]#RelatedImage', 'Images that the operator uses.'],
    },
  },
  GroupVersionKind: {
    about: 'GroupVersionKind is a kind of the cluster.',
    fields: { group: ['!string', 'API group.'], version: ['!string', 'API version.'], kind: ['!string', 'Kind.'] },
  },
  NamedInstallStrategy: {
    about: 'NamedInstallStrategy is how the operator is run.',
    fields: { strategy: ['!string', 'deployment.'], spec: ['#StrategyDetailsDeployment', 'The deployments.'] },
  },
  StrategyDetailsDeployment: {
    about: 'StrategyDetailsDeployment is what the strategy deployment creates.',
    fields: {
      deployments: ['![]#StrategyDeploymentSpec', 'Deployments.'],
      permissions: ['[]#StrategyDeploymentPermissions', 'Permissions in the namespaces that it watches.'],
      clusterPermissions: ['[]#StrategyDeploymentPermissions', 'Permissions in the cluster.'],
    },
  },
  StrategyDeploymentSpec: {
    about: 'StrategyDeploymentSpec is one deployment.',
    fields: {
      name: ['!string', 'Name of the deployment.'],
      spec: ['!#apps.DeploymentSpec', 'Spec of the deployment.'],
      label: ['{}string', 'Labels of the deployment.'],
    },
  },
  StrategyDeploymentPermissions: {
    about: 'StrategyDeploymentPermissions are rules for one service account.',
    fields: {
      serviceAccountName: ['!string', 'The service account.'],
      rules: ['![]#rbac.PolicyRule', 'Permissions of the service account.'],
    },
  },
  CustomResourceDefinitions: {
    about: 'CustomResourceDefinitions are custom resources that an operator owns or requires.',
    fields: { owned: ['[]#CRDDescription', 'Owned.'], required: ['[]#CRDDescription', 'Required.'] },
  },
  CRDDescription: {
    about: 'CRDDescription is one custom resource.',
    fields: {
      name: ['!string', 'Name of the CustomResourceDefinition.'],
      version: ['!string', 'Version of the API.'],
      kind: ['!string', 'Kind.'],
      displayName: ['string', 'Name for people.'],
      description: ['string', 'Description.'],
      resources: ['[]#APIResourceReference', 'Kinds that its controller creates.'],
      ...DESCRIPTORS,
    },
  },
  APIResourceReference: {
    about: 'APIResourceReference is a kind that a controller creates.',
    fields: { name: ['!string', 'Name.'], kind: ['!string', 'Kind.'], version: ['!string', 'Version of the API.'] },
  },
  APIServiceDefinitions: {
    about: 'APIServiceDefinitions are aggregated APIs that an operator owns or requires.',
    fields: { owned: ['[]#APIServiceDescription', 'Owned.'], required: ['[]#APIServiceDescription', 'Required.'] },
  },
  APIServiceDescription: {
    about: 'APIServiceDescription is one aggregated API.',
    fields: {
      name: ['!string', 'Name of the resource.'],
      group: ['!string', 'API group.'],
      version: ['!string', 'API version.'],
      kind: ['!string', 'Kind.'],
      deploymentName: ['string', 'Deployment that serves it.'],
      containerPort: ['int32', 'Port at which it is served; default 443.'],
      displayName: ['string', 'Name for people.'],
      description: ['string', 'Description.'],
      resources: ['[]#APIResourceReference', 'Kinds that its controller creates.'],
      ...DESCRIPTORS,
    },
  },
  WebhookDescription: {
    about: 'WebhookDescription is one webhook of the operator.',
    fields: {
      generateName: ['!string', 'Name; configurations get a suffix.'],
      type: ['!string', 'ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook.'],
      deploymentName: ['string', 'Deployment that serves it.'],
      containerPort: ['int32', 'Port of the service; default 443.'],
      targetPort: ['int-or-string', 'Port of the container; default the port of the service.'],
      rules: ['[]#admissionregistration.RuleWithOperations', 'Requests that are sent to the webhook.'],
      failurePolicy: ['string', 'Fail or Ignore.'],
      matchPolicy: ['string', 'Exact or Equivalent.'],
      objectSelector: ['#meta.LabelSelector', 'Objects whose requests are sent.'],
      sideEffects: ['!string', 'None or NoneOnDryRun.'],
      timeoutSeconds: ['int32', 'Time limit of the webhook in seconds.'],
      admissionReviewVersions: ['![]string', 'Versions of reviews that it understands.'],
      reinvocationPolicy: ['string', 'Never or IfNeeded.'],
      webhookPath: ['string', 'Path of the request.'],
      conversionCRDs: ['[]string', 'CustomResourceDefinitions that it converts.'],
    },
  },
  Maintainer: {
    about: 'Maintainer is a maintainer of the operator.',
    fields: { name: ['string', 'Name.'], email: ['string', 'E-mail address.'] },
  },
  AppLink: {
    about: 'AppLink is a name with a URL.',
    fields: { name: ['string', 'Name.'], url: ['string', 'URL.'] },
  },
  Icon: {
    about: 'Icon is a picture.',
    fields: { base64data: ['!string', 'The picture in base64.'], mediatype: ['!string', 'Media type of the icon.'] },
  },
  InstallMode: {
    about: 'InstallMode is one set of namespaces that the operator can watch or not.',
    fields: {
      type: ['!string', 'OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces.'],
      supported: ['!boolean', 'Whether it can.'],
    },
  },
  CleanupSpec: {
    about: 'CleanupSpec is what is deleted with the operator.',
    fields: { enabled: ['!boolean', 'Whether custom resources are deleted; only false is accepted.'] },
  },
  RelatedImage: {
    about: 'RelatedImage is an image that the operator uses.',
    fields: { name: ['!string', 'Name.'], image: ['!string', 'The image.'] },
  },
  ClusterServiceVersionStatus: {
    about: 'ClusterServiceVersionStatus is how far the installation is.',
    fields: {
      phase: ['string', 'Pending, InstallReady, Installing, Succeeded, Failed, Replacing or Deleting.'],
      message: ['string', 'Text for people.'],
      reason: ['string', 'One word for programs.'],
      lastUpdateTime: ['date-time', 'When the status was written.'],
      lastTransitionTime: ['date-time', 'When the phase changed.'],
      conditions: ['[]#ClusterServiceVersionCondition', 'Phases so far.'],
      requirementStatus: ['[]#RequirementStatus', 'Requirements of the operator.'],
      certsLastUpdated: ['date-time', 'When certificates of its services were issued.'],
      certsRotateAt: ['date-time', 'When they will be renewed.'],
      cleanup: ['any', 'Unused.'],
    },
  },
  ClusterServiceVersionCondition: {
    about: 'ClusterServiceVersionCondition is one phase that was reached.',
    fields: {
      phase: ['string', 'The phase.'],
      message: ['string', 'Text for people.'],
      reason: ['string', 'One word for programs.'],
      lastUpdateTime: ['date-time', 'When it was written.'],
      lastTransitionTime: ['date-time', 'When the phase was reached.'],
    },
  },
  RequirementStatus: {
    about: 'RequirementStatus is one thing that the operator needs.',
    fields: {
      group: ['!string', 'API group.'],
      version: ['!string', 'API version.'],
      kind: ['!string', 'Kind.'],
      name: ['!string', 'Name.'],
      status: ['!string', 'Present, NotPresent, PresentNotSatisfied …'],
      message: ['!string', 'Text for people.'],
      uuid: ['string', 'UID of the object.'],
      dependents: ['[]#DependentStatus', 'Dependencies of the requirement.'],
    },
  },
  DependentStatus: {
    about: 'DependentStatus is one permission that a service account needs.',
    fields: {
      group: ['!string', 'API group.'],
      version: ['!string', 'API version.'],
      kind: ['!string', 'PolicyRule.'],
      status: ['!string', 'Satisfied or NotSatisfied.'],
      uuid: ['string', 'UID of the object.'],
      message: ['string', 'Text for people.'],
    },
  },
};

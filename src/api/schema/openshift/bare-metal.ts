/**
 * metal3.io/v1alpha1 with the fields that apply to hosts without a management controller, and host offers. Source:
 * metal3-io/baremetal-operator apis/metal3.io/v1alpha1 of release 4.10.
 */
import { type DeclaredType, declarePackage } from './declare.ts';

const hardwareTypes: Readonly<Record<string, DeclaredType>> = {
  HardwareDetails: {
    about: 'HardwareDetails is what a host consists of.',
    fields: {
      systemVendor: ['#HardwareSystemVendor', 'Manufacturer of the host.'],
      firmware: ['#Firmware', 'Firmware of the host.'],
      ramMebibytes: ['int64', 'Memory of the host.'],
      nics: ['[]#NIC', 'Network links of the host.'],
      storage: ['[]#Storage', 'Disks of the host.'],
      cpu: ['#CPU', 'Processors of the host.'],
      hostname: ['string', 'Host name.'],
    },
  },
  HardwareSystemVendor: {
    about: 'HardwareSystemVendor is the maker of a host.',
    fields: {
      manufacturer: ['string', 'Name of the maker.'],
      productName: ['string', 'Name of the product.'],
      serialNumber: ['string', 'Serial number.'],
    },
  },
  Firmware: { about: 'Firmware of a host.', fields: { bios: ['#BIOS', 'BIOS of the firmware.'] } },
  BIOS: {
    about: 'BIOS of a host.',
    fields: { date: ['string', 'Date.'], vendor: ['string', 'Vendor.'], version: ['string', 'Version.'] },
  },
  NIC: {
    about: 'NIC is a link.',
    fields: {
      name: ['string', 'Name of the link.'],
      model: ['string', 'Driver or model.'],
      mac: ['string', 'Hardware address.'],
      ip: ['string', 'First address.'],
      speedGbps: ['int64', 'Speed in gigabits per second.'],
    },
  },
  Storage: {
    about: 'Storage is a disk.',
    fields: {
      name: ['string', 'Device file.'],
      type: ['string', 'HDD, SSD or NVME.'],
      sizeBytes: ['int64', 'Size.'],
      model: ['string', 'Model.'],
      serialNumber: ['string', 'Serial number.'],
    },
  },
  CPU: {
    about: 'CPU describes the processors.',
    fields: {
      arch: ['string', 'Architecture.'],
      model: ['string', 'Model.'],
      clockMegahertz: ['number', 'Clock.'],
      flags: ['[]string', 'Features.'],
      count: ['int64', 'Number of threads.'],
    },
  },
};

export const bareMetalPackage = declarePackage(
  'v1alpha1',
  {
    BareMetalHost: {
      isKind: true,
      about: 'BareMetalHost is a host of the inventory, which a Machine may claim.',
      fields: {
        spec: ['#BareMetalHostSpec', 'Access to the host, and whether the host may be used.'],
        status: ['#BareMetalHostStatus', 'State and hardware of the host.'],
      },
    },
    BareMetalHostSpec: {
      about: 'BareMetalHostSpec defines the access to a host, and whether the host may be used.',
      fields: {
        online: ['boolean', 'The host may be claimed. An administrator sets it for a host that has offered itself.'],
        bmc: ['#BMCDetails', 'Access to the host; empty for a host that offered itself.'],
        consumerRef: ['#core.ObjectReference', 'The Machine that has claimed the host.'],
        description: ['string', 'Description of the host.'],
        externallyProvisioned: ['boolean', 'The host is in use otherwise and is not claimed.'],
        automatedCleaningMode: [
          'string',
          'What happens to the data of a host that is released: metadata (deleted, the default) or disabled (moved to a backup).',
        ],
      },
    },
    BMCDetails: {
      about: 'BMCDetails is how a host is reached.',
      fields: {
        address: ['!string', 'ssh://[USER@]HOST[:PORT]'],
        credentialsName: [
          '!string',
          'Secret of the namespace with ssh-privatekey and ssh-hostkey, the public key of the host.',
        ],
      },
    },
    BareMetalHostStatus: {
      about: 'BareMetalHostStatus is what a host is and does.',
      fields: {
        operationalStatus: ['string', 'OK, discovered, error, delayed or detached.'],
        errorType: ['string', 'Kind of the error: registration error, inspection error, provisioning error.'],
        errorMessage: ['string', 'The error.'],
        errorCount: ['int64', 'Number of times that the host had an error.'],
        lastUpdated: ['date-time', 'When the status changed last.'],
        hardwareProfile: ['string', 'Always unknown.'],
        hardware: ['#HardwareDetails', 'Hardware of the host.'],
        provisioning: ['#ProvisionStatus', 'State of the provisioning of the host.'],
        goodCredentials: ['#CredentialsStatus', 'Credentials that were used with success.'],
        poweredOn: ['boolean', 'The host has reported lately.'],
      },
    },
    ProvisionStatus: {
      about: 'ProvisionStatus is what is done with a host.',
      fields: {
        state: [
          'string',
          'registering, available, provisioning, provisioned, externally provisioned, deprovisioning or deleting.',
        ],
        ID: ['string', 'The UID of the Machine.'],
      },
    },
    CredentialsStatus: {
      about: 'CredentialsStatus names credentials.',
      fields: {
        credentials: ['#core.SecretReference', 'The secret.'],
        credentialsVersion: ['string', 'Resource version of the secret.'],
      },
    },
    ...hardwareTypes,
  },
  'io.metal3',
);

export const hostOfferPackage = declarePackage(
  'v1alpha1',
  {
    HostOffer: {
      isRequest: true,
      about:
        'HostOffer is sent by a blank host without credentials; the answer shows whether a Machine has claimed it.',
      fields: {
        spec: ['!#HostOfferSpec', 'The host.'],
        status: ['#HostOfferStatus', 'Decision of the cluster.'],
      },
    },
    HostOfferSpec: {
      about: 'HostOfferSpec is the host.',
      fields: {
        name: ['!string', 'Name of the BareMetalHost, and of the Node that it becomes.'],
        machineID: ['!string', 'machine-id(5) of the host.'],
        signingKey: ['!string', 'Ed25519 public key that signs offers of the host, base64url.'],
        sealingKey: ['!string', 'X25519 public key that join tokens are encrypted for, base64url.'],
        state: ['!string', 'blank: the host belongs to no cluster; joined: it runs as a node.'],
        hardware: ['any', 'Hardware of the host.'],
        signature: ['!string', 'Signature of the other fields, base64url.'],
      },
    },
    HostOfferStatus: {
      about: 'HostOfferStatus is what the cluster has decided.',
      fields: {
        phase: ['string', 'Waiting, Claimed, Joined or Released.'],
        host: ['string', 'Name of the BareMetalHost.'],
        machine: ['string', 'Name of the Machine that has claimed it.'],
        cleaning: ['string', 'automatedCleaningMode of the BareMetalHost.'],
        sealedJoin: ['string', 'Join settings of the host, encrypted for its sealing key.'],
      },
    },
  },
  'dev.hyperedge.machine',
);

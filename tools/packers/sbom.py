"""The bill of materials, as SPDX 2.3 in JSON: the programs with their hashes, and each part of others with version, source and
licence."""
import hashlib
import json
import os
import re

# What copyright files of Debian and lockfiles of npm call a licence, and what SPDX calls it.
KNOWN = {"expat": "MIT", "mit": "MIT", "apache-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
         "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "isc": "ISC", "zlib": "Zlib", "curl": "curl", "openldap-2.8": "OLDAP-2.8",
         "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later",
         "lgpl-2": "LGPL-2.0-only", "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later",
         "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later"}
RELATION = {"dynamic": "DYNAMIC_LINK", "static": "STATIC_LINK", "build": "BUILD_DEPENDENCY_OF", "page": "CONTAINS"}


def word(text):
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def declared(part):
    """The licence of a part as SPDX writes it, and the text that has to be given where SPDX has no name for it."""
    if not part.licence:
        return ("NOASSERTION", None) if not part.notice else (f"LicenseRef-{word(part.name)}", part.notice)
    if known := KNOWN.get(part.licence.lower()):
        return known, None
    # What is left are expressions, such as `GPL-2+ or MIT`, and names of Debian's own: the whole text says it.
    return f"LicenseRef-{word(part.name)}", part.notice or part.licence


def package_of(part):
    licence, text = declared(part)
    row = {"name": part.name, "SPDXID": f"SPDXRef-{part.how}-{word(part.name)}", "versionInfo": part.version,
           "downloadLocation": part.source if part.source.startswith("https://") else "NOASSERTION", "filesAnalyzed": False,
           "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION",
           "supplier": "NOASSERTION" if part.how == "page" else "Organization: Debian"}
    if part.how == "page":
        locator = f"pkg:npm/{part.name.replace('@', '%40')}@{part.version}"
    else:
        locator = f"pkg:deb/debian/{part.name}@{part.version.replace('+', '%2B').replace(':', '%3A')}?distro=bookworm"
        row["sourceInfo"] = f"of the source package {part.source}" + (": " + " ".join(part.files) if part.how == "dynamic" else "")
    row["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]
    return row, licence, text


def file_of(path):
    with open(path, "rb") as file:
        content = file.read()
    name = os.path.basename(path)
    return {"fileName": f"./{name}", "SPDXID": f"SPDXRef-file-{name}", "fileTypes": ["BINARY"], "licenseConcluded": "Apache-2.0",
            "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                          {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()}]}


def pack(facts, programs):
    """The document, as bytes."""
    files = [file_of(path) for path in programs]
    verification = hashlib.sha1("".join(sorted(one["checksums"][0]["checksumValue"] for one in files)).encode()).hexdigest()
    berth = {"name": "berth", "SPDXID": "SPDXRef-berth", "versionInfo": facts.debian_version, "downloadLocation": "NOASSERTION",
             "filesAnalyzed": True, "packageVerificationCode": {"packageVerificationCodeValue": verification},
             "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "licenseInfoFromFiles": ["NOASSERTION"],
             "copyrightText": "NOASSERTION", "supplier": "NOASSERTION", "sourceInfo": f"commit {facts.commit}",
             "hasFiles": [one["SPDXID"] for one in files]}
    packages, texts = [berth], {}
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-berth"}]
    for part in sorted(facts.parts, key=lambda one: (one.how, one.name)):
        row, licence, text = package_of(part)
        packages.append(row)
        if text:
            texts[licence] = text
        ends = ("SPDXRef-berth", row["SPDXID"]) if part.how != "build" else (row["SPDXID"], "SPDXRef-berth")
        relationships.append({"spdxElementId": ends[0], "relationshipType": RELATION[part.how], "relatedSpdxElement": ends[1]})
    identity = hashlib.sha256(json.dumps([packages, files], sort_keys=True).encode()).hexdigest()[:32]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"berth-{facts.tag}",
        "documentNamespace": f"https://berth.dev/spdx/berth-{facts.tag}-{identity}",
        "creationInfo": {"created": facts.moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: berth-tools-release"]},
        "packages": packages, "files": files, "relationships": relationships,
        "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": text} for name, text in sorted(texts.items())]}
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def notices(facts):
    """The licences of what is compiled into the program, and into its page, which have to go with it."""
    text = "Parts of others in the programs and the web page of berth, with their licences.\n"
    for part in sorted(facts.parts, key=lambda one: one.name):
        if part.how in ("static", "page"):
            text += f"\n{'=' * 100}\n{part.name} {part.version}\n\n{part.notice.strip() or part.licence}\n"
    return text
